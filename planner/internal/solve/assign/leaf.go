package assign

import "sort"

// Sets are listed in chunks before they are tried: enough to try the fullest
// first, few enough not to list what is never tried.
const firstChunk, laterChunk = 16, 256

// leaf lists the set that was built.
func (f *filler) leaf(room, waste int64, tight bool) {
	if tight || room > waste || f.exchangeable(room) {
		return
	}
	for i := range f.s.prices {
		if p := &f.s.prices[i]; f.bought[i] < p.most[f.group]-p.slack {
			return
		}
	}
	items := make([]taken, 0, 8)
	for t, n := range f.counts {
		if n > 0 {
			items = append(items, taken{t, n})
		}
	}
	f.sets = append(f.sets, set{items, room})
	if len(f.sets) == f.chunk {
		copy(f.from, f.counts)
		f.full = true
	}
}

// exchangeable says whether two items inside are together no larger than one
// outside that would fit in their place.
func (f *filler) exchangeable(room int64) bool {
	f.inside = f.inside[:0]
	for t, n := range f.counts {
		if n > 0 {
			f.inside = append(f.inside, t)
		}
	}
	for i, a := range f.inside {
		for _, b := range f.inside[i:] {
			if (a != b || f.counts[a] > 1) && f.outside(f.s.it.size[a]+f.s.it.size[b], room) {
				return true
			}
		}
	}
	return false
}

// outside says whether an item from sum to sum+room is left outside.
func (f *filler) outside(sum, room int64) bool {
	size := f.s.it.size
	from := sort.Search(len(size), func(t int) bool { return size[t] <= sum+room })
	for t := from; t < len(size) && size[t] >= sum; t++ {
		if f.counts[t] < f.s.rem[t] {
			return true
		}
	}
	return false
}
