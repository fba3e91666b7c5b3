package pairs

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// run is the labels that come along one arc into a state, in the order of their first
// loads: at to end of the last step's, and what the choice adds.
type run struct {
	at, end int32
	head    float64 // first load of the first of them, here
	more    Label
	choice  int32
}

// bounds are what the loads of a label may come to, each and both.
type bounds struct{ one, two, both float64 }

// inward sorts a step's arcs by where they lead: those to a state are into[first[state]]
// and on, the state before times 2 plus the choice.
func (divide *Divider) inward(arcs [][2]netlist.Arc, states int) (first, into []int32) {
	first = slices.Grow(divide.first[:0], states+2)[:states+2]
	clear(first)
	for _, pair := range arcs {
		for _, arc := range pair {
			if arc.To != netlist.Nowhere {
				first[arc.To+2]++
			}
		}
	}
	for state := range states {
		first[state+2] += first[state+1]
	}
	into = slices.Grow(divide.into[:0], int(first[states+1]))[:first[states+1]]
	for state, pair := range arcs {
		for choice, arc := range pair {
			if arc.To != netlist.Nowhere {
				into[first[arc.To+1]] = int32(2*state + choice)
				first[arc.To+1]++
			}
		}
	}
	divide.first, divide.into = first, into
	return first, into
}

// merge takes the labels of all runs in the order of their first loads, those that no
// other of the same cell of bytes beats in both. Many runs are a heap: where a wide wire
// ends, hundreds of states lead to one.
func (divide *Divider) merge(limits bounds, space *space) {
	runs, least := divide.runs, unreached
	heap := len(runs) > fewRuns
	for at := len(runs)/2 - 1; at >= 0 && heap; at-- {
		settle(runs, at)
	}
	for len(runs) > 0 {
		pick := 0
		if !heap {
			pick = lowest(runs)
		}
		from := &runs[pick]
		if from.head > limits.one {
			break
		}
		divide.Work += mergeWork
		old := &divide.labels[from.at]
		label := Label{from.head, old.Two + from.more.Two, old.Bytes + from.more.Bytes}
		trace := 2*from.at + from.choice
		from.at++
		if from.at < from.end {
			from.head = divide.labels[from.at].One + from.more.One
		} else {
			runs[pick] = runs[len(runs)-1]
			runs = runs[:len(runs)-1]
		}
		if heap {
			settle(runs, 0)
		}
		if label.Two > limits.two || label.One+label.Two > limits.both {
			continue
		}
		if room := space.cell(label.Bytes); room >= 0 && label.Two < least[room] {
			least[room] = label.Two
			divide.next = append(divide.next, label)
			divide.traces = append(divide.traces, trace)
		}
	}
}

// unreached are second loads that all are less than.
var unreached = func() (least [finest]float64) {
	for room := range least {
		least[room] = math.Inf(1)
	}
	return least
}()

// mergeWork is about as many nanoseconds as a label takes.
const mergeWork = 15

// thin leaves about so many of the labels of a state, those from first on: of all whose
// first loads and bytes share a cell the last, whose second load is the least.
func (divide *Divider) thin(first, most int, space *space) {
	labels, traces := divide.next[first:], divide.traces[first:]
	if len(labels) <= most {
		return
	}
	low, scale := labels[0].One, 0.0
	if wide := labels[len(labels)-1].One - low; wide > 0 {
		scale = float64(max(1, most/space.cells())) / wide
	}
	var taken [finest]int // the cell of loads of the label kept last, counted from 1
	kept := len(labels)
	for i := len(labels) - 1; i >= 0; i-- {
		room, at := space.cell(labels[i].Bytes), 1+int((labels[i].One-low)*scale)
		if taken[room] == at {
			continue
		}
		taken[room] = at
		kept--
		labels[kept], traces[kept] = labels[i], traces[i]
	}
	end := first + copy(labels, labels[kept:])
	copy(traces, traces[kept:])
	divide.next, divide.traces = divide.next[:end], divide.traces[:end]
}

// fewRuns are no heap: looking at all is as quick.
const fewRuns = 6

func lowest(runs []run) (pick int) {
	for i := 1; i < len(runs); i++ {
		if runs[i].head < runs[pick].head {
			pick = i
		}
	}
	return pick
}

// settle puts a run where it belongs in the heap, among those behind it.
func settle(runs []run, at int) {
	for next := 2*at + 1; next < len(runs); at, next = next, 2*next+1 {
		if next+1 < len(runs) && runs[next+1].head < runs[next].head {
			next++
		}
		if runs[at].head <= runs[next].head {
			return
		}
		runs[at], runs[next] = runs[next], runs[at]
	}
}
