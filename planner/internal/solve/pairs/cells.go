package pairs

import (
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// Cells tell the loads of a pair apart: as many as make so many labels with all states
// of a frontier, no fewer and no more than those.
type Cells struct{ Fewest, Most, Labels int }

func (cells Cells) of(frontier *netlist.Frontier) int {
	states := 0
	for _, count := range frontier.States {
		states += count
	}
	return max(cells.Fewest, min(cells.Most, cells.Labels/max(1, states)))
}

// going is a choice for an item: what it adds to the labels of a state, where it leads,
// and what the loads may come to there, each and both.
type going struct {
	more        Label
	choice      int32
	to          int
	limit, most float64
}

// extend goes on from the labels of a state by a choice.
func (divide *Divider) extend(labels []Label, span []int32, going *going, space *space) {
	more, scale := going.more, float64(divide.cells)/going.limit*(1-1e-12)
	for j := span[0]; j < span[1]; j++ {
		next := Label{labels[j].One + more.One, labels[j].Two + more.Two, labels[j].Bytes + more.Bytes}
		if next.One > going.limit || next.Two > going.limit || next.One+next.Two > going.most {
			continue
		}
		room := space.cell(next.Bytes)
		if room < 0 {
			continue
		}
		row := going.to*divide.rooms + room
		at := row*divide.cells + min(int(next.One*scale), divide.cells-1)
		reach := &divide.spans[row]
		reach[0], reach[1] = min(reach[0], at), max(reach[1], at+1)
		if best := &divide.best[at]; next.Two < best.Two || (next.Two == best.Two && next.One < best.One) {
			*best, divide.from[at] = next, 2*j+going.choice
		}
	}
}

// nothing is a span of no cells.
var nothing = [2]int{math.MaxInt, 0}

// unreached is the label of a cell that has none.
var unreached = Label{math.Inf(1), math.Inf(1), 0}

// collect takes the labels that no other of the same bytes beats in both loads.
func (divide *Divider) collect(step, states int, labels []Label, start []int32) ([]Label, []int32) {
	labels, start, divide.trace[step] = labels[:0], start[:0], divide.trace[step][:0]
	for row := range states * divide.rooms {
		if row%divide.rooms == 0 {
			start = append(start, int32(len(labels)))
		}
		least := math.Inf(1)
		divide.Work += max(0, divide.spans[row][1]-divide.spans[row][0])
		for at := divide.spans[row][0]; at < divide.spans[row][1]; at++ {
			if divide.best[at].Two < least {
				least = divide.best[at].Two
				labels = append(labels, divide.best[at])
				divide.trace[step] = append(divide.trace[step], divide.from[at])
			}
			divide.best[at] = unreached
		}
		divide.spans[row] = nothing
	}
	return labels, append(start, int32(len(labels)))
}

func (divide *Divider) makeRoom(frontier *netlist.Frontier, space *space, cells Cells) {
	divide.rooms = 1
	if space.bound {
		divide.rooms = finest
	}
	divide.cells = max(1, cells.of(frontier)/divide.rooms)
	widest := 0
	for _, count := range frontier.States {
		widest = max(widest, count*divide.rooms)
	}
	for len(divide.best) < widest*divide.cells {
		divide.best = append(divide.best, unreached)
		divide.from = append(divide.from, 0)
	}
	for len(divide.spans) < widest {
		divide.spans = append(divide.spans, nothing)
	}
	for len(divide.trace) < len(frontier.Order) {
		divide.trace = append(divide.trace, nil)
	}
}
