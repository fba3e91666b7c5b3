package boundspine

import (
	"cmp"
	"slices"
	"sort"
)

// split is how a block may be divided among stages: the left one, which has the
// row's item before it, the right one with the item behind it, and stages between
// them. What a wire costs is counted where it is sure.
type split struct {
	// none and all are what left and right pay besides where nothing and where
	// everything of the block is not right; mixed where some is and some is not;
	// middle is what a stage between pays if it has anything.
	none, all, mixed ends
	middle           float64
	size             float64 // of the block
	most             float64 // that it adds to left and middle
	rows             []sizeRow
}

type ends struct{ left, right float64 }

// sizeRow are the ways to divide a block where what is not right has about one
// size: what that adds to loads, ascending, and the least that the right stage then
// has to do. Up to each the sizes are from least to most.
type sizeRow struct{ load, right, least, most []float64 }

// within is the last way where left and the stages between have so much load left;
// −1 where they have too little. Where right then has not less to do than the best
// known, it need not be told.
func (row *sizeRow) within(load, best float64) int {
	if last := len(row.load) - 1; last < 0 || row.right[last] >= best || row.load[0] > load {
		return -1
	}
	return sort.Search(len(row.load), func(i int) bool { return row.load[i] > load }) - 1
}

// part is what an item adds where it is not right, and where it is; between is what
// it adds to a stage between.
type part struct{ size, load, right, stays, between float64 }

func (row *row) newSplit(i int) split {
	var out split
	all := row.count(&out, i)
	if len(all) == 0 {
		return out
	}
	for _, of := range all {
		out.size += of.size
		out.none.right += of.stays
		out.all.left += of.load
		out.most += max(0, of.load)
		out.all.right += of.right
	}
	out.most += max(out.all.left, out.mixed.left)
	out.fill(all)
	return out
}

// partsOf are a block's.
func (row *row) partsOf(i int) []part { return row.count(&split{}, i) }

// count counts the wires of a block.
func (row *row) count(out *split, i int) []part {
	if len(row.block[i]) == 0 {
		return nil
	}
	parts := make(map[int]*part)
	for _, item := range row.block[i] {
		time := row.time[item]
		parts[item] = &part{size: row.size[item], load: time, stays: time, between: time}
	}
	for _, wire := range row.wires {
		row.addTo(out, parts, wire.Members, wire.Cost, i)
	}
	var all []part
	for _, item := range row.block[i] {
		all = append(all, *parts[item])
	}
	return all
}

// crossing is where a wire has members, seen from a block: in it (own), before and behind
// it, and of these in the items of the spine that are next to it.
type crossing struct {
	own                        []int
	before, after, first, last bool
}

// crossingOf is of block i; ok is false where other blocks have members too: the wire
// would be counted in both.
func (row *row) crossingOf(members []int32, i int) (of crossing, ok bool) {
	for _, item := range members {
		switch at := row.at[item]; {
		case at == 2*i:
			of.own = append(of.own, int(item))
		case at%2 == 0:
			return of, false
		case at < 2*i:
			of.before = true
			of.first = of.first || at == 2*i-1
		default:
			of.after = true
			of.last = of.last || at == 2*i+1
		}
	}
	return of, true
}

// addTo counts a wire of one of the block's items, or of all of them.
func (row *row) addTo(out *split, parts map[int]*part, members []int32, cost float64, i int) {
	wire, ok := row.crossingOf(members, i)
	if !ok {
		return
	}
	pay := func(to *float64, pays bool) {
		if pays {
			*to += cost
		}
	}
	switch {
	case len(wire.own) == 1:
		// Left pays where it has a member and others have some, right too.
		of := parts[wire.own[0]]
		pay(&out.none.left, wire.first)
		pay(&out.mixed.left, wire.first)
		pay(&out.all.left, wire.first)
		pay(&of.load, wire.after)
		if wire.first {
			of.load -= cost
		}
		pay(&of.right, wire.last)
		pay(&of.stays, wire.before)
		pay(&of.between, wire.before || wire.after)
	case len(wire.own) == len(parts) && len(wire.own) > 1:
		pay(&out.none.left, wire.first)
		pay(&out.none.right, wire.before)
		pay(&out.mixed.left, wire.first)
		out.mixed.right += cost
		pay(&out.all.left, wire.first && wire.after)
		pay(&out.all.right, wire.last)
		pay(&out.middle, wire.before || wire.after)
	}
}

// How fine ways to divide a block are told apart.
const (
	sizeRows = 384
	loads    = 192
	// leastCell is where nothing has a size or a load.
	leastCell = 1e-300
)

// way is a way to divide a block: the size of what is not right, what that adds to
// loads, and what right then has to do. Where several are one, most is the largest
// of their sizes.
type way struct{ size, most, load, right float64 }

// grid tells ways apart by cells of size and load. A cell has 1 + the number of its
// way; 0: it has none.
type grid struct {
	cell     []int32
	step     float64 // of size
	low, per float64 // of load
}

func newGrid(parts []part) *grid {
	const some = 1e-9 // more than the sums, which round
	total, low, most := 0.0, 0.0, 0.0
	for _, of := range parts {
		total += of.size
		low, most = low+min(of.load, 0), most+max(of.load, 0)
	}
	out := &grid{cell: make([]int32, (sizeRows+1)*(loads+2))}
	out.step, out.per = max(total*(1+some)/sizeRows, leastCell), max((most-low)*(1+some)/loads, leastCell)
	out.low = low - out.per*some
	return out
}

func (grid *grid) of(size, load float64) *int32 {
	return &grid.cell[int(size/grid.step)*(loads+2)+int((load-grid.low)/grid.per)]
}

// join adds a way; those that share a cell are one, with the least of each.
func (grid *grid) join(all []way, one way) []way {
	at := grid.of(one.size, one.load)
	if *at == 0 {
		*at = int32(len(all) + 1)
		return append(all, one)
	}
	had := &all[*at-1]
	had.size, had.most = min(had.size, one.size), max(had.most, one.most)
	had.load, had.right = min(had.load, one.load), min(had.right, one.right)
	return all
}

// fill lists the ways.
func (out *split) fill(parts []part) {
	parts = slices.Clone(parts)
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(b.load, a.load) })
	grid := newGrid(parts)
	now, next := []way{{}}, []way(nil)
	for _, of := range parts {
		next = next[:0]
		for _, one := range now {
			next = grid.join(next, way{one.size, one.most, one.load, one.right + of.stays})
			next = grid.join(next, way{one.size + of.size, one.most + of.size, one.load + of.load, one.right + of.right})
		}
		clear(grid.cell)
		now, next = next, now
	}
	slices.SortFunc(now, func(a, b way) int { return cmp.Compare(a.load, b.load) })
	out.rows = make([]sizeRow, sizeRows+1)
	for _, one := range now {
		out.rows[int(one.size/grid.step)].add(one)
	}
}

// add adds a way of more load than those before, or covers it by one that is no
// worse.
func (row *sizeRow) add(one way) {
	last := len(row.load) - 1
	if last >= 0 {
		one.size, one.most = min(one.size, row.least[last]), max(one.most, row.most[last])
	}
	if last >= 0 && one.right >= row.right[last] {
		row.least[last], row.most[last] = one.size, one.most
		return
	}
	row.load, row.right = append(row.load, one.load), append(row.right, one.right)
	row.least, row.most = append(row.least, one.size), append(row.most, one.most)
}
