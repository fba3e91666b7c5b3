package assign

import "math"

// set is what one device may take; waste is the room it leaves.
type set struct {
	items []taken
	waste int64
}

// filler lists the sets that a device of one group may take together with the
// largest item left, lexicographically, in chunks.
//
// A set is left out where exchanging its items for a larger one that stays
// outside would still fit: what the larger one leaves behind then fits where it
// was (the dominance of Martello and Toth, Knapsack Problems, 1990, chapter 8).
type filler struct {
	s       *search
	reach   *reach
	group   int
	first   int
	counts  []int // the set being built, by kind
	from    []int // the last set listed; where resumed the next follows it
	resumed bool
	sets    []set
	chunk   int
	full    bool // the chunk is, or the search stopped
	inside  []int
	bought  []int64 // value of the set being built at each price
}

func (f *filler) start(s *search, r *reach, group, first int) {
	f.s, f.reach, f.group, f.first, f.resumed = s, r, group, first, false
	if f.counts == nil {
		f.counts, f.from = make([]int, len(s.rem)), make([]int, len(s.rem))
	}
	clear(f.counts)
}

// next lists the next chunk; more says that there may be another.
func (f *filler) next() (sets []set, more bool) {
	f.sets, f.full, f.chunk = make([]set, 0, firstChunk), false, firstChunk
	if f.resumed {
		f.chunk = laterChunk
	}
	f.bought = make([]int64, len(f.s.prices))
	size := &f.s.prices[0]
	room := f.s.caps[f.group]
	f.walk(f.first, room, room-size.most[f.group]+size.slack, math.MaxInt64, f.resumed)
	f.resumed = true
	return f.sets, f.full
}

// walk decides kind t. room is what is left on the device, waste how much may
// stay empty, outside the smallest size left outside so far. tight: all counts
// so far are those of the last set listed.
func (f *filler) walk(t int, room, waste, outside int64, tight bool) {
	s := f.s
	for t < len(s.rem) && s.rem[t] == 0 {
		t++
	}
	if f.stop() || waste < 0 {
		return
	}
	if t == len(s.rem) {
		f.leaf(room, waste, tight)
		return
	}
	if !f.reach.any(t, room-waste, room) || f.poor(t, room) {
		return
	}
	size := s.it.size[t]
	high := int(min(int64(s.rem[t]), room/size))
	if tight {
		high = f.from[t]
	}
	low := 0
	if t == f.first {
		low = 1
	}
	for n := high; n >= low; n-- {
		allowed, smallest := waste, outside
		if n > 0 { // not to be exchanged for what stays outside
			allowed = min(allowed, outside-size-1)
		}
		if n < s.rem[t] { // one more must not fit
			allowed, smallest = min(allowed, size-1), size
		}
		f.counts[t] = n
		f.buy(t, n)
		f.walk(t+1, room-int64(n)*size, allowed, smallest, tight && n == high)
		f.buy(t, -n)
		if f.full {
			return
		}
	}
	f.counts[t] = 0
}

// stop says that the chunk is full, or that the context ended.
func (f *filler) stop() bool {
	f.s.steps++
	if f.s.steps&1023 == 0 && f.s.ctx.Err() != nil {
		f.s.cut, f.full = true, true
	}
	return f.full
}

func (f *filler) buy(t, n int) {
	for i := range f.bought {
		f.bought[i] += int64(n) * f.s.prices[i].of[t]
	}
}

// poor says that no end of this set is worth enough for the rest to fit on the
// other devices.
func (f *filler) poor(t int, room int64) bool {
	for i := range f.s.prices {
		p := &f.s.prices[i]
		if p.table != nil && f.bought[i]+p.table.best(t, room) < p.most[f.group]-p.slack {
			return true
		}
	}
	return false
}
