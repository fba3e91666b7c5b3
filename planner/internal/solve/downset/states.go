package downset

import (
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// states says which counts of devices of each kind can be used up below a
// down-set, and the least largest load with each. A state is a mixed-radix
// number of the counts.
type states struct {
	most   []int // devices of each kind that can be of use
	stride []int // by kind
	count  int
	used   [][]int // by state, then kind
	block  []int32 // of a down-set; -1: none of its states is reached
	value  []float64
	from   []step
}

// step is how a state was reached: from the down-set below, with one more
// device of a kind.
type step uint32

func newStep(set int32, kind int) step { return step(set)*maxKinds + step(kind) }

func (s step) set() int32 { return int32(s / maxKinds) }
func (s step) kind() int  { return int(s % maxKinds) }

// newStates is for as many devices as there are items, for each holds one.
func newStates(kinds []graph.Kind, items, sets int) *states {
	t := &states{count: 1}
	for _, k := range kinds {
		n := min(k.Count, items)
		t.stride = append(t.stride, t.count)
		t.most = append(t.most, n)
		t.count *= n + 1
	}
	for s := range t.count {
		used := make([]int, len(kinds))
		for k, n := range t.most {
			used[k] = s / t.stride[k] % (n + 1)
		}
		t.used = append(t.used, used)
	}
	t.block = make([]int32, sets)
	for i := range t.block {
		t.block[i] = -1
	}
	return t
}

// of finds or makes a down-set's states.
func (t *states) of(set int32) int {
	if t.block[set] < 0 {
		t.block[set] = int32(len(t.value) / t.count)
		for range t.count {
			t.value = append(t.value, math.Inf(1))
			t.from = append(t.from, 0)
		}
	}
	return int(t.block[set]) * t.count
}

// state is one live state of the down-set at hand.
type state struct {
	at    int
	value float64
}

// live lists a down-set's states within a limit that no state with fewer
// devices equals.
func (t *states) live(set int32, limit float64, best []float64, out []state) []state {
	out = out[:0]
	if t.block[set] < 0 {
		return out
	}
	base := t.of(set)
	for s := range t.count {
		fewer := math.Inf(1)
		for k, d := range t.stride {
			if t.used[s][k] > 0 {
				fewer = min(fewer, best[s-d])
			}
		}
		v := t.value[base+s]
		best[s] = min(v, fewer)
		if v <= limit && v < fewer {
			out = append(out, state{s, v})
		}
	}
	return out
}

// reset forgets what was reached.
func (t *states) reset() {
	for i := range t.block {
		t.block[i] = -1
	}
	t.value, t.from = t.value[:0], t.from[:0]
}
