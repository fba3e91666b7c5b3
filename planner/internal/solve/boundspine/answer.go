package boundspine

import (
	"cmp"
	"context"
	"slices"
	"sort"
)

// Answer is a placement within a limit, a stage for each item, as the same dynamic
// program finds it among real divisions of blocks; nil where it finds none, or where
// a block has too many items. What wires cost that are not sure is not counted.
func (spine *Spine) Answer(ctx context.Context, limit float64) []int {
	row := spine.forth
	if row.picks == nil {
		for i := range row.items {
			if len(row.block[i]) > mostPicked {
				return nil
			}
		}
		for i := range row.items {
			row.picks = append(row.picks, row.newPicks(i))
		}
	}
	find := &finder{row: row, limit: limit}
	for range row.stages {
		find.reached = append(find.reached, make([][]*trail, len(row.items)))
	}
	find.reached[0][0] = []*trail{{}}
	for stage := range find.reached {
		for first := range row.items {
			if ctx.Err() != nil {
				return nil
			}
			for _, one := range find.thinned(find.reached[stage][first]) {
				if find.stretch(one) {
					return spine.inOrder(find.places())
				}
			}
		}
	}
	return nil
}

// inOrder is nil where items of a block are in an order that the placement breaks:
// it knows nothing of that.
func (spine *Spine) inOrder(stage []int) []int {
	for item, others := range spine.after {
		for _, other := range others {
			if stage[item] > stage[other] {
				return nil
			}
		}
	}
	return stage
}

// mostPicked are the bits of a set.
const mostPicked = 64

// pick is a way to divide a block: which of its items are not right.
type pick struct {
	size, load, right float64
	set               uint64
}

// picks are the ways of one block, a list for each size, with more load and less for
// the right stage; order are the block's items, those of much load first.
type picks struct {
	lists [][]pick
	parts []part
	order []int
}

func (row *row) newPicks(i int) picks {
	out := picks{parts: row.partsOf(i)}
	grid := newGrid(out.parts)
	now, next := []pick{{}}, []pick(nil)
	for at, of := range out.parts {
		out.order = append(out.order, at)
		next = next[:0]
		for _, one := range now {
			next = grid.add(next, pick{one.size, one.load, one.right + of.stays, one.set})
			next = grid.add(next, pick{one.size + of.size, one.load + of.load, one.right + of.right, one.set | 1<<at})
		}
		clear(grid.cell)
		now, next = next, now
	}
	slices.SortStableFunc(out.order, func(a, b int) int { return cmp.Compare(out.parts[b].load, out.parts[a].load) })
	slices.SortFunc(now, func(a, b pick) int {
		return cmp.Or(cmp.Compare(a.load, b.load), cmp.Compare(a.right, b.right), cmp.Compare(a.set, b.set))
	})
	out.lists = make([][]pick, sizeRows+1)
	for _, one := range now {
		list := &out.lists[int(one.size/grid.step)]
		if last := len(*list) - 1; last < 0 || one.right < (*list)[last].right {
			*list = append(*list, one)
		}
	}
	return out
}

// add adds a way, or puts it in the place of a worse one of its cell.
func (grid *grid) add(all []pick, one pick) []pick {
	at := grid.of(one.size, one.load)
	if *at == 0 {
		*at = int32(len(all) + 1)
		return append(all, one)
	}
	if had := &all[*at-1]; one.right < had.right {
		*had = one
	}
	return all
}

// trail is what a stage has begun with, and how that came about: the stage before
// had the spine up to the item last, and these of the block behind it were its own,
// or of stages between.
type trail struct {
	begun
	stage, first int
	from         *trail
	last         int
	set          uint64
	load, room   float64 // what the stage before had left for them
}

// finder goes along a row as walk does, with what is real.
type finder struct {
	*row
	limit   float64
	reached [][][]*trail
	end     *trail
}

// stretch lets a stage have one item of the spine after the other; true where it
// ends the row.
func (find *finder) stretch(one *trail) bool {
	for b := one.first; b < one.first+len(find.paid[one.first]); b++ {
		load := one.begun.load + find.timeTo[2*b+2] - find.timeTo[2*one.first+1]
		size := one.size + find.sizeTo[2*b+2] - find.sizeTo[2*one.first+1]
		if load > find.limit || size > find.room {
			return false
		}
		if load += find.paid[one.first][b-one.first]; load > find.limit {
			continue
		}
		if b == len(find.items)-1 {
			find.end = one
			return true
		}
		find.divide(one, b, find.limit-load, find.room-size)
	}
	return false
}

func (find *finder) divide(one *trail, b int, load, room float64) {
	of, all := &find.splits[b+1], uint64(1)<<len(find.block[b+1])-1
	next := trail{stage: one.stage + 1, first: b + 1, from: one, last: b, load: load, room: room}
	if of.none.left <= load {
		find.put(next, begun{of.none.right, of.size})
	}
	for ; len(find.block[b+1]) > 0 && next.stage < find.stages; next.stage++ {
		if next.set = all; of.all.left <= load && of.size <= room && find.divided(&next) != nil {
			find.put(next, begun{of.all.right, 0})
		}
		find.some(next, b, load, room)
		if load >= of.most && room >= of.size {
			return
		}
		load, room = load+max(0, find.limit-of.middle), room+find.room
	}
}

// some divides a block so that some of it is right and some is not.
func (find *finder) some(next trail, b int, load, room float64) {
	of, lists := &find.splits[b+1], find.picks[b+1].lists
	best := find.limit - of.mixed.right
	for i := len(lists) - 1; i >= 0; i-- {
		one := within(lists[i], load-of.mixed.left, best)
		if one == nil || one.size > room || one.set == 0 || one.set == next.set {
			continue
		}
		way := next
		if way.set = one.set; way.stage == way.from.stage+1 || find.divided(&way) != nil {
			best = one.right
			find.put(way, begun{best + of.mixed.right, of.size - one.size})
		}
	}
}

// within is the pick with the least for the right stage, where that is below the best
// known, of those that add no more than a load.
func within(list []pick, load, best float64) *pick {
	if last := len(list) - 1; last < 0 || list[last].right >= best || list[0].load > load {
		return nil
	}
	at := sort.Search(len(list), func(i int) bool { return list[i].load > load }) - 1
	if list[at].right >= best {
		return nil
	}
	return &list[at]
}

func (find *finder) put(one trail, with begun) {
	one.begun = with
	many, end := float64(find.stages-one.stage), len(find.timeTo)-1
	if one.stage < find.stages && with.load <= find.limit && with.size <= find.room &&
		with.load+find.timeTo[end]-find.timeTo[2*one.first+1] <= many*find.limit &&
		with.size+find.sizeTo[end]-find.sizeTo[2*one.first+1] <= many*find.room {
		find.reached[one.stage][one.first] = append(find.reached[one.stage][one.first], &one)
	}
}

// divided are the stages of what is not right of a block: the first stage that has
// room for it, those of much load first. It is nil where that leaves some over.
func (find *finder) divided(at *trail) []int {
	i := at.last + 1
	of, parts := &find.splits[i], find.picks[i].parts
	stages := at.stage - at.from.stage
	out := slices.Repeat([]int{at.stage}, len(parts))
	load, room := make([]float64, stages), make([]float64, stages)
	for stage := range load {
		load[stage], room[stage] = find.limit-of.middle, find.room
	}
	load[0], room[0] = at.load-of.mixed.left, at.room
	if at.set == uint64(1)<<len(parts)-1 {
		load[0] = at.load - of.all.left
		for _, of := range parts {
			load[0] += of.load
		}
	}
	for _, item := range find.picks[i].order {
		if at.set>>item&1 == 0 {
			continue
		}
		stage, part := 0, &parts[item]
		for ; stage < stages; stage++ {
			cost := part.load
			if stage > 0 {
				cost = part.between
			}
			if cost <= load[stage] && part.size <= room[stage] {
				load[stage], room[stage] = load[stage]-cost, room[stage]-part.size
				break
			}
		}
		if stage == stages {
			return nil
		}
		out[item] = at.from.stage + stage
	}
	return out
}

// places follows the trail back from the end.
func (find *finder) places() []int {
	stage := make([]int, len(find.at))
	last := len(find.items) - 1
	for at := find.end; at != nil; at = at.from {
		for i := at.first; i <= last; i++ {
			if item := find.items[i]; item >= 0 {
				stage[item] = at.stage
			}
			for _, item := range find.block[i] {
				if i > at.first {
					stage[item] = at.stage
				}
			}
		}
		if at.from == nil {
			break
		}
		last = at.last
		if len(find.block[last+1]) > 0 {
			for i, to := range find.divided(at) {
				stage[find.block[last+1][i]] = to
			}
		}
	}
	return stage
}

// apart is as cells is for bounds; an answer that is left out is lost.
const apart = 2000

// thinned drops what another is no worse than in both, and of near ones all but one.
func (find *finder) thinned(some []*trail) []*trail {
	slices.SortStableFunc(some, func(a, b *trail) int {
		return cmp.Or(cmp.Compare(a.begun.load, b.begun.load), cmp.Compare(a.size, b.size))
	})
	var kept []*trail
	for _, one := range some {
		if last := len(kept) - 1; last >= 0 && (kept[last].size <= one.size ||
			one.begun.load < kept[last].begun.load+find.limit/apart && one.size > kept[last].size-find.room/apart) {
			continue
		}
		kept = append(kept, one)
	}
	return kept
}
