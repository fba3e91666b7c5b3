package boundcheck

import (
	"cmp"
	"math"
	"slices"
)

// division is how the groups between a knot and the next may be divided: those that
// go, to the stage of the knot or to stages without a knot, and those that stay for
// the stage of the next.
type division struct {
	count      int
	size       float64
	nothing    share // where all stay
	everything share // where all go
	// part is what is paid besides where some go and some stay, between what each
	// stage without a knot pays.
	part    share
	between float64
	// options are by size; of each, with more to do here and less for the next, the
	// sizes of those before included.
	options [][]option
}

// share is what the stage of the knot and that of the next have to do.
type share struct{ here, next float64 }

// option is a way to divide: from least to most is the size of what goes.
type option struct {
	share
	least, most float64
}

// choice is what one group adds.
type choice struct {
	size       float64
	goes, stay share
}

func (line *line) divisionAt(knot int) *division {
	if known, is := line.divisions[knot]; is {
		return known
	}
	out := &division{}
	choices := make(map[int]*choice)
	for name, own := range line.groups {
		if line.rank[name] == 2*knot+1 {
			time := own.time[line.kind]
			choices[name] = &choice{size: own.size, goes: share{here: time}, stay: share{next: time}}
			out.size += own.size
		}
	}
	out.count = len(choices)
	for _, output := range line.outputs {
		line.share(out, choices, output, knot)
	}
	names := make([]int, 0, len(choices))
	for name, of := range choices {
		names = append(names, name)
		out.nothing.add(of.stay)
		out.everything.add(of.goes)
	}
	slices.Sort(names)
	out.options = [][]option{{{}}}
	for _, name := range names {
		line.work += out.with(choices[name])
		if line.work > mostWork {
			break // the check is given up
		}
	}
	for _, list := range out.options {
		for i := 1; i < len(list); i++ {
			list[i].covers(list[i-1])
		}
	}
	line.divisions[knot] = out
	return out
}

func (to *share) add(more share) { to.here, to.next = to.here+more.here, to.next+more.next }

// share counts an output of one group of a division, or of all.
func (line *line) share(out *division, choices map[int]*choice, output output, knot int) {
	var own []*choice
	ahead, behind, knotHas, nextHas := false, false, false, false
	for _, name := range output.groups {
		rank := line.rank[name]
		if of := choices[name]; of != nil {
			own = append(own, of)
			continue
		}
		if rank%2 == 1 {
			return
		}
		ahead, behind = ahead || rank <= 2*knot, behind || rank > 2*knot
		knotHas, nextHas = knotHas || rank == 2*knot, nextHas || rank == 2*knot+2
	}
	of := func(pays bool) float64 {
		if pays {
			return output.cost
		}
		return 0
	}
	switch {
	case len(own) == 1:
		own[0].goes.add(share{of(behind), of(nextHas)})
		own[0].stay.add(share{of(knotHas), of(ahead)})
	case len(own) > 1 && len(own) == len(choices):
		out.nothing.add(share{of(knotHas), of(ahead)})
		out.everything.add(share{of(knotHas && behind), of(nextHas)})
		out.part.add(share{of(knotHas), output.cost})
		out.between += of(ahead || behind)
	default:
	}
}

// How many options are told apart: sizes, and loads of each size.
const mostSizes, mostLoads = 400, 128

// with lets one more group go or stay; it returns how many ways there were.
func (out *division) with(of *choice) (work int) {
	width := max(out.size/mostSizes, math.SmallestNonzeroFloat64)
	lists := make([][]option, mostSizes+2)
	for _, one := range slices.Concat(out.options...) {
		gone := one
		gone.add(of.goes)
		gone.least, gone.most = gone.least+of.size, gone.most+of.size
		one.add(of.stay)
		for _, each := range []option{one, gone} {
			at := min(int(each.least/width), mostSizes+1)
			lists[at] = append(lists[at], each)
		}
	}
	out.options = out.options[:0]
	for _, list := range lists {
		if work += len(list); len(list) > 0 {
			out.options = append(out.options, fewer(list))
		}
	}
	return work
}

// fewer drops what another is no worse than, and joins neighbours of too many.
func fewer(list []option) (kept []option) {
	slices.SortFunc(list, func(a, b option) int {
		return cmp.Or(cmp.Compare(a.here, b.here), cmp.Compare(a.next, b.next))
	})
	for _, one := range list {
		if last := len(kept) - 1; last >= 0 && kept[last].next <= one.next {
			kept[last].covers(one)
			continue
		}
		kept = append(kept, one)
	}
	for len(kept) > mostLoads {
		for i := 0; i < len(kept); i += 2 {
			joined := kept[min(i+1, len(kept)-1)]
			joined.here = kept[i].here
			joined.covers(kept[i])
			kept[i/2] = joined
		}
		kept = kept[:(len(kept)+1)/2]
	}
	return kept
}

// covers stands for another option too.
func (one *option) covers(other option) {
	one.least, one.most = min(one.least, other.least), max(one.most, other.most)
}

// handOn divides what lies behind a stage's last knot, where so much of the load and
// the room is left.
func (line *line) handOn(stage, knot int, load, room float64) {
	of := line.divisionAt(knot)
	if of.nothing.here <= load {
		line.put(stage+1, knot+1, legacy{of.nothing.next, of.size})
	}
	for to := stage + 1; of.count > 0 && line.fits(to, knot+1, legacy{}); to++ {
		if of.everything.here <= load && of.size <= room {
			line.put(to, knot+1, legacy{of.everything.next, 0})
		}
		for _, list := range of.options {
			count, _ := slices.BinarySearchFunc(list, load-of.part.here, func(one option, load float64) int {
				if one.here <= load {
					return -1
				}
				return 1
			})
			if count > 0 && list[count-1].least <= room {
				line.put(to, knot+1, legacy{list[count-1].next + of.part.next, of.size - min(list[count-1].most, room)})
			}
		}
		load, room = load+max(0, line.limit-of.between), room+line.room
	}
}

// put notes what a stage may have to do before its first knot.
func (line *line) put(stage, first int, one legacy) {
	if one.size = max(one.size, 0); line.fits(stage, first, one) {
		line.open[stage][first] = append(line.open[stage][first], one)
	}
}

// fits says that a stage can have so much to do, and it and those after it all that
// is left.
func (line *line) fits(stage, first int, one legacy) bool {
	if stage >= len(line.open) || one.load > line.limit || one.size > line.room {
		return false
	}
	for rank := 2 * first; rank < len(line.time); rank++ {
		one.load, one.size = one.load+line.time[rank], one.size+line.size[rank]
	}
	many := float64(len(line.open) - stage)
	return one.load <= many*line.limit && one.size <= many*line.room
}

// legacy is what a stage has to do at least with groups before its first knot.
type legacy struct{ load, size float64 }

type legacies []legacy

// mostLegacies are told apart for a stage and its first knot.
const mostLegacies = 150

// thin keeps those that no other is below in both, and joins neighbours of too many.
func (some legacies) thin() (kept legacies) {
	slices.SortFunc(some, func(a, b legacy) int {
		return cmp.Or(cmp.Compare(a.load, b.load), cmp.Compare(a.size, b.size))
	})
	least := math.Inf(1)
	for _, one := range some {
		if one.size < least {
			kept, least = append(kept, one), one.size
		}
	}
	for len(kept) > mostLegacies {
		for i := 0; i < len(kept); i += 2 {
			kept[i/2] = legacy{kept[i].load, kept[min(i+1, len(kept)-1)].size}
		}
		kept = kept[:(len(kept)+1)/2]
	}
	return kept
}
