package assign

import "sort"

// Sets are listed in chunks before they are tried: enough to try the fullest
// first, few enough not to list what is never tried.
const firstChunk, laterChunk = 16, 256

// leaf lists the set that was built.
func (fill *filler) leaf(room, waste int64, tight bool) {
	if tight || room > waste || fill.exchangeable(room) {
		return
	}
	for i := range fill.search.prices {
		if cost := &fill.search.prices[i]; fill.bought[i] < cost.most[fill.group]-cost.slack {
			return
		}
	}
	items := make([]taken, 0, 8)
	for kind, count := range fill.counts {
		if count > 0 {
			items = append(items, taken{kind, count})
		}
	}
	fill.sets = append(fill.sets, set{items, room})
	if len(fill.sets) == fill.chunk {
		copy(fill.from, fill.counts)
		fill.full = true
	}
}

// exchangeable says whether two items inside are together no larger than one
// outside that would fit in their place.
func (fill *filler) exchangeable(room int64) bool {
	fill.inside = fill.inside[:0]
	for kind, count := range fill.counts {
		if count > 0 {
			fill.inside = append(fill.inside, kind)
		}
	}
	for i, a := range fill.inside {
		for _, b := range fill.inside[i:] {
			if (a != b || fill.counts[a] > 1) && fill.outside(fill.search.it.size[a]+fill.search.it.size[b], room) {
				return true
			}
		}
	}
	return false
}

// outside says whether an item from sum to sum+room is left outside.
func (fill *filler) outside(sum, room int64) bool {
	size := fill.search.it.size
	from := sort.Search(len(size), func(kind int) bool { return size[kind] <= sum+room })
	for kind := from; kind < len(size) && size[kind] >= sum; kind++ {
		if fill.counts[kind] < fill.search.rem[kind] {
			return true
		}
	}
	return false
}
