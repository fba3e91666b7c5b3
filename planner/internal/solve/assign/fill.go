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
	search  *search
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

func (fill *filler) start(find *search, reachable *reach, group, first int) {
	fill.search, fill.reach, fill.group, fill.first, fill.resumed = find, reachable, group, first, false
	if fill.counts == nil {
		fill.counts, fill.from = make([]int, len(find.rem)), make([]int, len(find.rem))
	}
	clear(fill.counts)
}

// next lists the next chunk; more says that there may be another.
func (fill *filler) next() (sets []set, more bool) {
	fill.sets, fill.full, fill.chunk = make([]set, 0, firstChunk), false, firstChunk
	if fill.resumed {
		fill.chunk = laterChunk
	}
	fill.bought = make([]int64, len(fill.search.prices))
	size := &fill.search.prices[0]
	room := fill.search.caps[fill.group]
	fill.walk(fill.first, room, room-size.most[fill.group]+size.slack, math.MaxInt64, fill.resumed)
	fill.resumed = true
	return fill.sets, fill.full
}

// walk decides kind. room is what is left on the device, waste how much may
// stay empty, outside the smallest size left outside so far. tight: all counts
// so far are those of the last set listed.
func (fill *filler) walk(kind int, room, waste, outside int64, tight bool) {
	find := fill.search
	for kind < len(find.rem) && find.rem[kind] == 0 {
		kind++
	}
	if fill.stop() || waste < 0 {
		return
	}
	if kind == len(find.rem) {
		fill.leaf(room, waste, tight)
		return
	}
	if !fill.reach.any(kind, room-waste, room) || fill.poor(kind, room) {
		return
	}
	size := find.it.size[kind]
	high := int(min(int64(find.rem[kind]), room/size))
	if tight {
		high = fill.from[kind]
	}
	low := 0
	if kind == fill.first {
		low = 1
	}
	for count := high; count >= low; count-- {
		allowed, smallest := waste, outside
		if count > 0 { // not to be exchanged for what stays outside
			allowed = min(allowed, outside-size-1)
		}
		if count < find.rem[kind] { // one more must not fit
			allowed, smallest = min(allowed, size-1), size
		}
		fill.counts[kind] = count
		fill.buy(kind, count)
		fill.walk(kind+1, room-int64(count)*size, allowed, smallest, tight && count == high)
		fill.buy(kind, -count)
		if fill.full {
			return
		}
	}
	fill.counts[kind] = 0
}

// stop says that the chunk is full, or that the context ended.
func (fill *filler) stop() bool {
	fill.search.steps++
	if fill.search.steps&1023 == 0 && fill.search.ctx.Err() != nil {
		fill.search.cut, fill.full = true, true
	}
	return fill.full
}

func (fill *filler) buy(kind, count int) {
	for i := range fill.bought {
		fill.bought[i] += int64(count) * fill.search.prices[i].of[kind]
	}
}

// poor says that no end of this set is worth enough for the rest to fit on the
// other devices.
func (fill *filler) poor(kind int, room int64) bool {
	for i := range fill.search.prices {
		cost := &fill.search.prices[i]
		if cost.table != nil && fill.bought[i]+cost.table.best(kind, room) < cost.most[fill.group]-cost.slack {
			return true
		}
	}
	return false
}
