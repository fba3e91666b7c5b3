package downset

import (
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// states lists the combinations of device counts, by kind, that a down-set can use, and the least
// largest load of each. A state is a mixed-radix number of the counts.
type states struct {
	most   []int // useful devices of each kind
	stride []int // by kind
	count  int
	used   [][]int // by state, then kind
	block  []int32 // of a down-set; -1: none of its states is reached
	value  []float64
	from   []step
}

// step is how a state was reached: from a smaller down-set, with one more device of a kind.
type step uint32

func newStep(set int32, kind int) step { return step(set)*maxKinds + step(kind) }

func (by step) set() int32 { return int32(by / maxKinds) }
func (by step) kind() int  { return int(by % maxKinds) }

// newStates uses at most as many devices of a kind as there are items, as each device takes an
// item.
func newStates(kinds []graph.Kind, items, sets int) *states {
	table := &states{count: 1}
	for _, kind := range kinds {
		count := min(kind.Count, items)
		table.stride = append(table.stride, table.count)
		table.most = append(table.most, count)
		table.count *= count + 1
	}
	for at := range table.count {
		used := make([]int, len(kinds))
		for kind, count := range table.most {
			used[kind] = at / table.stride[kind] % (count + 1)
		}
		table.used = append(table.used, used)
	}
	table.block = make([]int32, sets)
	for i := range table.block {
		table.block[i] = -1
	}
	return table
}

// of finds or makes a down-set's states.
func (table *states) of(set int32) int {
	if table.block[set] < 0 {
		table.block[set] = int32(len(table.value) / table.count)
		for range table.count {
			table.value = append(table.value, math.Inf(1))
			table.from = append(table.from, 0)
		}
	}
	return int(table.block[set]) * table.count
}

// state is one live state of the current down-set.
type state struct {
	at    int
	value float64
}

// live lists a down-set's states within a limit, without those that a state with fewer devices
// equals.
func (table *states) live(set int32, limit float64, best []float64, out []state) []state {
	out = out[:0]
	if table.block[set] < 0 {
		return out
	}
	base := table.of(set)
	for at := range table.count {
		fewer := math.Inf(1)
		for kind, stride := range table.stride {
			if table.used[at][kind] > 0 {
				fewer = min(fewer, best[at-stride])
			}
		}
		value := table.value[base+at]
		best[at] = min(value, fewer)
		if value <= limit && value < fewer {
			out = append(out, state{at, value})
		}
	}
	return out
}

// reset removes all states.
func (table *states) reset() {
	for i := range table.block {
		table.block[i] = -1
	}
	table.value, table.from = table.value[:0], table.from[:0]
}
