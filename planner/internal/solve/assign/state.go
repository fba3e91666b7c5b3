package assign

import (
	"context"
	"encoding/binary"
	"slices"
)

// newSearch asks about caps and fills at most nodes devices.
func newSearch(ctx context.Context, it *items, caps []int64, nodes int64) *search {
	s := &search{ctx: ctx, it: it, rem: slices.Clone(it.count), count: len(it.weight), nodes: nodes}
	s.failed = make(map[string]struct{})
	sorted := slices.Sorted(slices.Values(caps))
	slices.Reverse(sorted)
	for _, c := range sorted {
		if last := len(s.caps) - 1; last >= 0 && s.caps[last] == c {
			s.left[last]++
			continue
		}
		s.caps, s.left = append(s.caps, c), append(s.left, 1)
	}
	most := slices.Clone(s.caps)
	if s.caps[0] <= exactSums {
		var r reach
		r.build(it.size, it.count, s.caps[0])
		for g := range most {
			most[g] = r.most(s.caps[g])
		}
	}
	s.price(it.size, most, nil)
	return s
}

// state names what is left, exactly.
func (s *search) state() []byte {
	s.key = s.key[:0]
	for _, n := range s.left {
		s.key = binary.AppendUvarint(s.key, uint64(n))
	}
	for _, n := range s.rem {
		s.key = binary.AppendUvarint(s.key, uint64(n))
	}
	return s.key
}
