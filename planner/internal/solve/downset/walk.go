package downset

import (
	"errors"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

var errFull = errors.New("more states than memory is set aside for")

// run looks for the best way with loads up to a limit. found is false if there is none. If the
// lattice is complete, this proves the limit a lower bound.
func (dp *search) run(limit float64) (found bool, err error) {
	dp.limit = limit
	full := int32(dp.sets.len() - 1)
	dp.table.reset()
	clear(dp.seen)
	dp.table.value[dp.table.of(0)] = 0
	for set := int32(0); set < full && dp.err == nil; set++ {
		if set%256 == 0 {
			dp.err = dp.ctx.Err()
		}
		dp.live = dp.table.live(set, dp.limit, dp.best, dp.live)
		dp.keepHopeful(set)
		if len(dp.live) == 0 {
			continue
		}
		dp.start(dp.sets.members(set))
		dp.from = set
		dp.walk(set, usage{})
	}
	return len(dp.table.live(full, limit, dp.best, nil)) > 0, dp.err
}

// keepHopeful drops live states that cannot be finished, and records the kinds that the others have
// left.
func (dp *search) keepHopeful(set int32) {
	hopeful := dp.live[:0]
	dp.open = dp.open[:0]
	var open [maxKinds]bool
	for _, at := range dp.live {
		if dp.hopeless(at.at, set) {
			continue
		}
		hopeful = append(hopeful, at)
		for kind := range dp.kinds {
			open[kind] = open[kind] || dp.table.used[at.at][kind] < dp.table.most[kind]
		}
	}
	dp.live = hopeful
	for kind := range dp.kinds {
		if open[kind] {
			dp.open = append(dp.open, kind)
		}
	}
}

// walk visits the sets above one, each once, whatever the way.
func (dp *search) walk(set int32, used usage) {
	dp.steps++
	if dp.steps%1024 == 0 && dp.err == nil {
		if dp.err = dp.ctx.Err(); len(dp.table.value) > dp.most {
			dp.err = errFull
		}
	}
	if dp.err != nil {
		return
	}
	for edge := dp.sets.first[set]; edge < dp.sets.first[set+1]; edge++ {
		to, item := dp.sets.next[edge], dp.sets.item[edge]
		// A set's number is larger than that of the set before it, so a mark is never confused with
		// that of set 0.
		if dp.seen[to] == dp.from+1 {
			continue
		}
		dp.seen[to] = dp.from + 1
		w := used
		for kind := range dp.kinds {
			w.time[kind] += dp.time[int(item)*len(dp.kinds)+kind]
		}
		w.size += dp.size[item]
		if !dp.fits(&w) {
			continue
		}
		dp.push(item, &w)
		if dp.fits(&w) {
			dp.record(to, &w)
			dp.walk(to, w)
		}
		dp.pop(item)
	}
}

// fits reports that some remaining device can take the stretch, or a longer one.
func (dp *search) fits(used *usage) bool {
	for _, kind := range dp.open {
		if _, least := dp.load(used, kind); least <= dp.limit && used.size <= dp.capacity[kind] {
			return true
		}
	}
	return false
}

// record puts the stretch on a device of each kind that can take it.
func (dp *search) record(to int32, used *usage) {
	for _, kind := range dp.open {
		load, _ := dp.load(used, kind)
		if !(load <= dp.limit) || used.size > dp.capacity[kind] {
			continue
		}
		for _, at := range dp.live {
			next := at.at + dp.table.stride[kind]
			if dp.table.used[at.at][kind] == dp.table.most[kind] || dp.hopeless(next, to) {
				continue
			}
			if i, value := dp.table.of(to)+next, max(at.value, load); value < dp.table.value[i] {
				dp.table.value[i], dp.table.from[i] = value, newStep(dp.from, kind)
				if int(to) == dp.sets.len()-1 {
					dp.limit = min(dp.limit, value*(1-graph.Rounding))
				}
			}
		}
	}
}

// places follows the steps back from the full set.
func (dp *search) places() (place []int, largest float64) {
	full := int32(dp.sets.len() - 1)
	base, at := dp.table.of(full), 0
	for i := range dp.table.count {
		if dp.table.value[base+i] < dp.table.value[base+at] {
			at = i
		}
	}
	largest = dp.table.value[base+at]
	device := make([]int32, len(dp.ordered.Nodes))
	for set := full; set != 0; {
		by := dp.table.from[dp.table.of(set)+at]
		at -= dp.table.stride[by.kind()]
		d := dp.table.used[at][by.kind()]
		for kind := range by.kind() {
			d += dp.kinds[kind].Count
		}
		for _, item := range dp.sets.members(set) {
			device[item] = int32(d)
		}
		set = by.set()
	}
	return dp.ordered.Places(device), largest
}
