package anymemory

import (
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// Scatter is a problem of placing items on any device. Items with the same
// costs, and nothing between them in time, are one class: which of them a
// device holds makes no difference to its peak, only how many.
type Scatter struct {
	In      *instance.Instance
	Items   []instance.Set
	ItemOf  []int // of each unit
	classes []class
	slots   []slot
	Bins    []Bin
	// weightless are the items that hold nothing at any moment.
	weightless []int
	// tooLarge: too many units and devices for the tables of a search.
	tooLarge bool
}

// class is a number of items that are alike.
type class struct {
	items []int
	pin   int
	slots []int
}

// slot is a place in time: units of one class that run one after the other.
type slot struct {
	class int
	runs  []timeline.Summary // of 0, 1, 2, … of them
}

// mostNodes bounds the nodes of all devices' trees, 100 B each.
const mostNodes = 1 << 20

// NewScatter finds the classes, their places in time, and what devices hold.
func NewScatter(in *instance.Instance) (*Scatter, error) {
	sets, err := in.Sets()
	if err != nil {
		return nil, err
	}
	s := &Scatter{In: in, Items: sets, ItemOf: make([]int, len(in.Graph.Units))}
	for i := range sets {
		for _, u := range sets[i].Units {
			s.ItemOf[u] = i
		}
	}
	s.makeSlots()
	s.makeBins()
	s.tooLarge = 2*len(s.slots)*len(s.Bins) > mostNodes
	return s, nil
}

// nameOf is the unit that a message names a class by.
func (s *Scatter) nameOf(c int) string {
	units := s.Items[s.classes[c].items[0]].Units
	return s.In.Graph.Units[units[len(units)-1]].Name
}
