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
	table := newCutTable(line.length, min(line.slots, line.length))
	sums := newIntervalSums(line)
	for from := line.length - 1; from >= 0; from-- {
		if ctx.Err() != nil {
			return 0, nil, false
		}
		sums.from(from)
		table.take(from, 0, line.cpu[from], interval{from, from, OnCPU})
		for to := from; to < line.length && line.slots > 0; to++ {
			cost, kind, fits := sums.to(to)
			if !fits {
				break
			}
			if line.straddles != nil {
				cost += line.straddles.least(from, to, sums.sizeSum)
			}
			table.take(from, 1, cost, interval{from, to, kind})
		}
	}
	least, taken = table.best()
	return least, taken, true
}

// cutTable has the least sum from every position on, with at most so many
// calls. Where that is too much to list, calls are not counted: the sum is then
// less than or equal to what it would be.
type cutTable struct {
	rows, width int
	least       []float64 // by calls left, then position
	choice      []interval
}

// mostCuts bounds the entries of a table.
const mostCuts = 4 << 20

func newCutTable(length, calls int) *cutTable {
	table := &cutTable{rows: calls + 1, width: length + 1}
	if calls >= length || table.rows > mostCuts/table.width {
		table.rows = 1
	}
	table.least, table.choice = make([]float64, table.rows*table.width), make([]interval, table.rows*table.width)
	for i := range table.least {
		if i%table.width < length {
			table.least[i] = math.Inf(1)
		}
	}
	return table
}

// take begins what is left at a position with an interval, which is a call or
// none.
func (table *cutTable) take(from, call int, cost float64, one interval) {
	if table.rows == 1 {
		call = 0
	}
	for row := call; row < table.rows; row++ {
		at := row*table.width + from
		if sum := cost + table.least[(row-call)*table.width+one.to+1]; sum < table.least[at] {
			table.least[at], table.choice[at] = sum, one
		}
	}
}

// best is the least sum and its calls; +Inf: there is no way.
func (table *cutTable) best() (least float64, taken []interval) {
	row := table.rows - 1
	if least = table.least[row*table.width]; math.IsInf(least, 1) {
		return least, nil
	}
	for from := 0; from < table.width-1; {
		one := table.choice[row*table.width+from]
		if one.kind != OnCPU {
			taken = append(taken, one)
			row = max(0, row-1)
		}
		from = one.to + 1
	}
	return least, taken
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
