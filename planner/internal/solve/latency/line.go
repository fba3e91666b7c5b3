package latency

import (
	"context"
	"math"
)

// line is a chain of positions that calls take intervals of. A unit is in a
// call that has the positions from a to b where it is between them: where
// first ≥ a and last ≤ b.
//
// Of a path of the graph (path.go) the least sum over intervals is a bound on
// every assignment; of an order of all units (order.go) it is that of one.
type line struct {
	*instance

	length      int
	first, last []int32    // of units: a position, −1 and length where there is none
	cpu         []float64  // of positions: its time on the CPUs
	straddles   *straddles // nil: what they add is not looked for
}

// interval is what one call takes of a line, both ends included.
type interval struct{ from, to, kind int }

// cuts is the least sum over the ways to give every position to the CPUs or,
// in intervals, to calls: of a call its units' time and what it must fetch and
// send. It goes back from the line's end; what intervals from one position
// cost is added up in one pass over the edges, so that it takes positions ×
// (edges + positions × calls) steps. False where ctx ends before that.
func (line *line) cuts(ctx context.Context) (least float64, taken []interval, done bool) {
	most := min(line.slots, line.length)
	table := newCutTable(line.length, most)
	sums := newIntervalSums(line)
	for from := line.length - 1; from >= 0; from-- {
		if ctx.Err() != nil {
			return 0, nil, false
		}
		sums.from(from)
		for used := 0; used <= most; used++ {
			table.take(used, from, line.cpu[from]+table.at(used, from+1), interval{from, from, OnCPU})
		}
		for to := from; to < line.length; to++ {
			cost, kind, fits := sums.to(to)
			if !fits {
				break
			}
			if line.straddles != nil {
				cost += line.straddles.least(from, to, sums.sizeSum)
			}
			for used := 1; used <= most; used++ {
				table.take(used, from, cost+table.at(used-1, to+1), interval{from, to, kind})
			}
		}
	}
	for from, used := 0, most; from < line.length; {
		one := table.choice[used*(line.length+1)+from]
		if one.kind != OnCPU {
			taken = append(taken, one)
			used--
		}
		from = one.to + 1
	}
	return table.at(most, 0), taken, true
}

// cutTable has the least sum from every position on, with so many calls left.
type cutTable struct {
	width  int
	least  []float64
	choice []interval
}

func newCutTable(length, most int) *cutTable {
	table := &cutTable{width: length + 1, least: make([]float64, (most+1)*(length+1)), choice: make([]interval, (most+1)*(length+1))}
	for i := range table.least {
		table.least[i] = math.Inf(1)
		table.choice[i] = interval{i % table.width, i % table.width, OnCPU}
		if i%table.width == length {
			table.least[i] = 0
		}
	}
	return table
}

func (table *cutTable) at(used, from int) float64 { return table.least[used*table.width+from] }

func (table *cutTable) take(used, from int, sum float64, one interval) {
	if at := used*table.width + from; sum < table.least[at] {
		table.least[at], table.choice[at] = sum, one
	}
}

// intervalSums adds up what the intervals from one position on cost; the
// positions come in falling order.
type intervalSums struct {
	*line

	starts        [][]int32   // units by their first position
	time          [][]float64 // by kind and last position, of units with first ≥ from
	size, out, in []float64   // likewise; what is paid from this end on, or no more
	reach         []int32     // of nodes: the largest first of their readers
	timeSum       []float64   // by kind, up to the last end
	sizeSum       float64
	outSum, inSum float64
}

func newIntervalSums(line *line) *intervalSums {
	sums := &intervalSums{
		line: line, starts: make([][]int32, line.length), time: make([][]float64, len(line.problem.Kinds)),
		size: make([]float64, line.length+1), out: make([]float64, line.length+1), in: make([]float64, line.length+1),
		reach: make([]int32, len(line.unitOf)), timeSum: make([]float64, len(line.problem.Kinds)),
	}
	for kind := range sums.time {
		sums.time[kind] = make([]float64, line.length+1)
	}
	for unit, first := range line.first {
		if first >= 0 && int(line.last[unit]) < line.length {
			sums.starts[first] = append(sums.starts[first], int32(unit))
		}
	}
	for node, readers := range line.readBy {
		sums.reach[node] = -1
		for _, reader := range readers {
			sums.reach[node] = max(sums.reach[node], line.first[line.unitOf[reader]])
		}
	}
	return sums
}

// from goes on to an earlier position.
func (sums *intervalSums) from(from int) {
	for _, unit := range sums.starts[from] {
		last := sums.last[unit]
		sums.size[last] += sums.line.size[unit]
		for kind := range sums.time {
			sums.time[kind][last] += sums.line.time[kind][unit]
		}
		for _, node := range sums.nodes[unit] {
			if sums.reach[node] > last {
				sums.out[last] += sums.transfer[node]
				sums.out[sums.reach[node]] -= sums.transfer[node]
			}
		}
	}
	clear(sums.in)
	for node, unit := range sums.unitOf {
		if int(sums.last[unit]) >= from {
			continue
		}
		soonest := int32(sums.length)
		for _, reader := range sums.readBy[node] {
			if other := sums.unitOf[reader]; int(sums.first[other]) >= from {
				soonest = min(soonest, sums.last[other])
			}
		}
		sums.in[soonest] += sums.transfer[node]
	}
	clear(sums.timeSum)
	sums.sizeSum, sums.outSum, sums.inSum = 0, 0, 0
}

// to is the least cost of the interval that ends there, the kind of device it
// has that on, and whether any holds it; ends come in rising order.
func (sums *intervalSums) to(to int) (cost float64, best int, fits bool) {
	sums.sizeSum += sums.size[to]
	sums.outSum += sums.out[to]
	sums.inSum += sums.in[to]
	cost, best = math.Inf(1), OnCPU
	for kind := range sums.timeSum {
		sums.timeSum[kind] += sums.time[kind][to]
	}
	for _, kind := range sums.unlike {
		if sums.sizeSum > sums.problem.Kinds[kind].Room() {
			continue
		}
		if total := sums.timeSum[kind] + sums.outSum + sums.inSum; total < cost {
			cost, best = total, kind
		}
	}
	return cost, best, best != OnCPU
}
