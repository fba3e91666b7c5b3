package assign

import (
	"context"
	"encoding/binary"
	"slices"
)

// newSearch asks about caps and fills at most nodes devices.
func newSearch(ctx context.Context, it *itemTable, caps []int64, nodes int64) *search {
	find := &search{ctx: ctx, it: it, rem: slices.Clone(it.count), count: len(it.weight), nodes: nodes}
	find.failed = make(map[string]struct{})
	sorted := slices.Sorted(slices.Values(caps))
	slices.Reverse(sorted)
	for _, capacity := range sorted {
		if last := len(find.caps) - 1; last >= 0 && find.caps[last] == capacity {
			find.left[last]++
			continue
		}
		find.caps, find.left = append(find.caps, capacity), append(find.left, 1)
	}
	most := slices.Clone(find.caps)
	if find.caps[0] <= exactSums {
		var reachable reach
		reachable.build(it.size, it.count, find.caps[0])
		for group := range most {
			most[group] = reachable.most(find.caps[group])
		}
	}
	find.price(it.size, most, nil)
	return find
}

// state names what is left, exactly.
func (find *search) state() []byte {
	find.key = find.key[:0]
	for _, count := range find.left {
		find.key = binary.AppendUvarint(find.key, uint64(count))
	}
	for _, count := range find.rem {
		find.key = binary.AppendUvarint(find.key, uint64(count))
	}
	return find.key
}
