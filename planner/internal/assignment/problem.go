package assignment

import (
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// Problem places items on any device. Items are one kind if they have the same costs and nothing
// runs between them. A device's peak depends on the number of items of each kind, not on which
// ones.
type Problem struct {
	In        *instance.Instance
	Items     []instance.Set
	ItemOf    []int // item of each unit
	Kinds     []Kind
	Positions []Position
	Devices   []Device
	// weightless lists the items without memory at any moment.
	weightless []int
	// TooLarge: there are too many units and devices for a search's tables.
	TooLarge bool
	known    []MemoryMoment // moments of a relaxed problem
}

// Kind is a set of items with equal costs.
type Kind struct {
	Items     []int
	Pin       int
	Positions []int
}

// Position is a place in time: consecutive units of one kind. In a relaxed problem it may have
// several kinds, in any order.
type Position struct {
	Kinds     []int
	Summaries []timeline.Summary // for 0, 1, 2, … units of the first kind, then for each number of the second, …
	strides   []int              // of each kind in Summaries; nil for one kind
}

// maxNodes limits the nodes of all devices' trees, 100 B each.
const maxNodes = 1 << 20

// New finds the kinds, their places in time, and the devices' own memory.
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

// NameOf returns the unit that messages use as the name of a kind.
func (problem *Problem) NameOf(kind int) string {
	units := problem.Items[problem.Kinds[kind].Items[0]].Units
	return problem.In.Graph.Units[units[len(units)-1]].Name
}
