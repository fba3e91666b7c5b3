package assignment

import (
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// Problem is a problem of placing items on any device. Items with the same
// costs, and nothing between them in time, are one kind: which of them a
// device holds makes no difference to its peak, only how many.
type Problem struct {
	In        *instance.Instance
	Items     []instance.Set
	ItemOf    []int // of each unit
	Kinds     []Kind
	Positions []Position
	Devices   []Device
	// weightless are the items that hold nothing at any moment.
	weightless []int
	// TooLarge: too many units and devices for the tables of a search.
	TooLarge bool
	known    []MemoryMoment // of a relaxed problem
}

// Kind is a number of items of equal costs.
type Kind struct {
	Items     []int
	Pin       int
	Positions []int
}

// Position is a place in time: units of one kind that run one after the other, or in a
// relaxed problem of several, in any order.
type Position struct {
	Kinds     []int
	Summaries []timeline.Summary // of 0, 1, 2, … of the first kind, likewise of each number of the second, …
	strides   []int              // of each kind in Summaries; nil of one kind
}

// maxNodes bounds the nodes of all devices' trees, 100 B each.
const maxNodes = 1 << 20

// New finds the kinds, their places in time, and what devices hold.
func New(in *instance.Instance) (*Problem, error) {
	sets, err := in.Sets()
	if err != nil {
		return nil, err
	}
	problem := &Problem{In: in, Items: sets, ItemOf: make([]int, len(in.Graph.Units))}
	for i := range sets {
		for _, unit := range sets[i].Units {
			problem.ItemOf[unit] = i
		}
	}
	problem.findPositions()
	problem.readDevices()
	problem.TooLarge = 2*len(problem.Positions)*len(problem.Devices) > maxNodes
	return problem, nil
}

// NameOf is the unit that a message names a kind by.
func (problem *Problem) NameOf(kind int) string {
	units := problem.Items[problem.Kinds[kind].Items[0]].Units
	return problem.In.Graph.Units[units[len(units)-1]].Name
}
