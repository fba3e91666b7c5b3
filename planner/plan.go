package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Plan places a model on GPUs: it fills in what the workload leaves open for
// this model and these GPUs, works out what each unit costs, and solves. A
// device with a name and no capacity is the catalogue's GPU of that name.
// Faults are those of [catalogue.Find], [estimate.Resolve], [estimate.Table]
// and [Solve].
//
// Plan is [Solve] with the cost model's table; give Solve one of your own to
// place what was measured.
func Plan(ctx context.Context, graph *modelgraph.Graph, workload costmodel.Workload, topology *costmodel.Topology, options ...Option) (*Solution, error) {
	if graph == nil || topology == nil {
		return nil, errors.New("planner: a plan needs a graph and a topology")
	}
	workload.Mode = cmp.Or(workload.Mode, costmodel.Infer)
	if workload.Strategy == costmodel.Auto {
		return nil, costmodel.Refuse(costmodel.Set("strategy", workload.Strategy), "a plan is of one strategy; strategy.Rows of package planner/strategy puts all side by side")
	}
	topology, err := named(topology, workload.Mode)
	if err != nil {
		return nil, err
	}
	costs, err := costsOf(graph, workload, topology)
	if err != nil {
		return nil, err
	}
	asked := question{problem: Problem{Graph: graph, Costs: costs, Topology: topology}}
	for _, option := range options {
		option(&asked)
	}
	return Solve(ctx, asked.problem, asked.settings)
}

// named is the topology with the catalogue's GPUs where devices have a name
// alone.
func named(topology *costmodel.Topology, mode costmodel.Mode) (*costmodel.Topology, error) {
	out := *topology
	out.Devices = slices.Clone(topology.Devices)
	for i := range out.Devices {
		device := &out.Devices[i]
		if device.Name == "" || device.CapacityBytes != 0 {
			continue
		}
		gpu, err := catalogue.Find(device.Name)
		if err != nil {
			return nil, fmt.Errorf("devices[%d]: %w; or give its capacity", i, err)
		}
		host, reserved := device.Host, device.ReservedBytes
		*device = gpu.Device(mode)
		device.Host, device.ReservedBytes = host, device.ReservedBytes+reserved
	}
	return &out, out.Check()
}

// costsOf is the table of the workload on these GPUs. What is left out is what
// [costmodel.Fields] has for it, as on the command line.
func costsOf(graph *modelgraph.Graph, workload costmodel.Workload, topology *costmodel.Topology) (*costmodel.Table, error) {
	workload, err := estimate.Resolve(graph, estimate.On(graph, workload, topology))
	if err != nil {
		return nil, err
	}
	costs, err := estimate.Table(graph, workload)
	if err != nil {
		return nil, fmt.Errorf("counting %q: %w", graph.Name, err)
	}
	return costs, nil
}

// Option changes what [Plan] asks for.
type Option func(*question)

type question struct {
	problem  Problem
	settings Settings
}

// WithPins fixes units to devices.
func WithPins(pins ...Pin) Option {
	return func(asked *question) { asked.problem.Pins = append(asked.problem.Pins, pins...) }
}

// WithObjective sets what is minimised; without it, [Memory].
func WithObjective(objective Objective) Option {
	return func(asked *question) { asked.problem.Objective = objective }
}

// WithSettings limits the search.
func WithSettings(settings Settings) Option {
	return func(asked *question) { asked.settings = settings }
}
