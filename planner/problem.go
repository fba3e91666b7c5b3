package planner

import (
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// Problem is what is to be placed, what it costs, and where it can go.
type Problem struct {
	Graph    *modelgraph.Graph
	Costs    *costmodel.Table
	Topology *costmodel.Topology
	// Pins fixes units to devices. The pattern is the path of a unit, a layer
	// or a module around them; a trailing * matches any ending.
	Pins []Pin
	// Together lists patterns whose units must share a device. As each device
	// takes one stretch of the chain, the units between them go along.
	Together [][]string
	// Anywhere: any unit may be on any device, whatever the order (device
	// maps only). Then a together-group takes no units between along.
	Anywhere bool
	// Offload is the tier that units may leave the devices for where not all
	// fit: as few bytes as can be then travel in a forward. Empty: none.
	Offload Tier
	// offloaded are the units that have left, while the rest is placed.
	offloaded []int
	// Objective is what is minimised; empty: [Memory].
	Objective Objective
}

// Pin fixes the units that a pattern names to a device.
type Pin struct {
	Pattern string
	Device  int
}

// Settings are the limits of a Solve; the zero value works.
type Settings struct {
	// TimeLimit ends the search; 0 means 10 s. The best map so far is
	// returned with its bound.
	TimeLimit time.Duration
	// Probes ends the search after so many probes of a target; 0: no limit.
	Probes int
	// Progress, if not nil, is told how the search stands.
	Progress func(Progress)
}

// Progress is where the search for the largest share stands.
type Progress = chain.Progress

// DefaultTimeLimit is used where Settings give none.
const DefaultTimeLimit = 10 * time.Second
