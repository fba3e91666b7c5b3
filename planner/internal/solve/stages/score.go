package stages

import (
	"fmt"
	"slices"
)

// Plan is a pipeline: the degrees of its stages from the first, the stage of each node, and the
// index of its choice at that stage's degree.
type Plan struct {
	Stages        []Degrees
	Stage, Choice []int
}

// Degrees are the degrees of a stage.
type Degrees struct{ Data, Tensor int }

// Devices returns the number of devices of a stage.
func (degrees Degrees) Devices() int { return degrees.Data * degrees.Tensor }

// Load is the time and memory of one stage.
type Load struct {
	Degrees
	// Compute is the time of its choices, Transfers of sending and receiving, and Resync of
	// synchronizing its weights. Each is per micro-batch, divided among the replicas.
	Compute, Transfers, Resync float64
	// Memory is the bytes of a device, InFlight the micro-batches in it.
	Memory   float64
	InFlight int
}

// Total returns the stage's time for a micro-batch.
func (load Load) Total() float64 { return load.Compute + load.Transfers + load.Resync }

// rounding is the relative difference allowed between sums in different orders.
const rounding = 1e-12

// Score evaluates a plan from the definitions. It returns the load of each stage and the largest
// time. The error names a broken rule: too many devices or replicas, a forbidden degree or choice,
// an empty stage, an edge against the order, or an exceeded capacity.
//
// A replica of a stage of degree d has ⌈s/d⌉ micro-batches in flight. s is the sum of the
// data-parallel degrees of that stage and the later ones (§3.2).
func (problem *Problem) Score(plan *Plan) (loads []Load, largest float64, err error) {
	if err := problem.valid(plan); err != nil {
		return nil, 0, err
	}
	loads = make([]Load, len(plan.Stages))
	after := 0
	for at := len(loads) - 1; at >= 0; at-- {
		data := plan.Stages[at].Data
		after += data
		loads[at] = Load{Degrees: plan.Stages[at], InFlight: (after + data - 1) / data}
	}
	for node, at := range plan.Stage {
		load := &loads[at]
		choice := problem.choices(node, load.Tensor)[plan.Choice[node]]
		load.Compute += choice.Time / float64(load.Data)
		load.Resync += problem.Resync * choice.Weights * float64(load.Data-1) / float64(load.Data)
		load.Memory += choice.InFlight*float64(load.InFlight) + choice.Fixed
	}
	for _, edge := range problem.Edges {
		from, to := plan.Stage[edge.From], plan.Stage[edge.To]
		if from > to {
			return nil, 0, fmt.Errorf("node %q in stage %d reads %q in stage %d", problem.Nodes[edge.To].Name, to, problem.Nodes[edge.From].Name, from)
		}
		if from < to {
			loads[from].Transfers += edge.Send[slices.Index(problem.Tensor, loads[from].Tensor)] / float64(loads[from].Data)
			loads[to].Transfers += edge.Receive[slices.Index(problem.Tensor, loads[to].Tensor)] / float64(loads[to].Data)
		}
	}
	for at, load := range loads {
		largest = max(largest, load.Total())
		if load.Memory > problem.Capacity*(1+rounding) {
			err = fmt.Errorf("a device of stage %d holds %.0f bytes, more than its budget of %.0f", at, load.Memory, problem.Capacity)
		}
	}
	return loads, largest, err
}

// choices returns the ways to run a node on so many devices.
func (problem *Problem) choices(node, tensor int) []Choice {
	if i := slices.Index(problem.Tensor, tensor); i >= 0 {
		return problem.Nodes[node].Choices[i]
	}
	return nil
}

// valid checks the rules that need no sums over the stages' nodes.
func (problem *Problem) valid(plan *Plan) error {
	if len(plan.Stage) != len(problem.Nodes) || len(plan.Choice) != len(problem.Nodes) {
		return fmt.Errorf("%d stages and %d choices for %d nodes", len(plan.Stage), len(plan.Choice), len(problem.Nodes))
	}
	devices, replicas := 0, 0
	for at, stage := range plan.Stages {
		if !slices.Contains(problem.Data, stage.Data) || !slices.Contains(problem.Tensor, stage.Tensor) {
			return fmt.Errorf("stage %d: %d replicas of %d devices are not among the degrees", at, stage.Data, stage.Tensor)
		}
		if !slices.Contains(plan.Stage, at) {
			return fmt.Errorf("stage %d of %d is empty", at, len(plan.Stages))
		}
		devices, replicas = devices+stage.Devices(), replicas+stage.Data
	}
	if devices > problem.Devices || replicas > problem.Replicas {
		return fmt.Errorf("%d devices of %d, %d replicas of %d", devices, problem.Devices, replicas, problem.Replicas)
	}
	for node, at := range plan.Stage {
		if at < 0 || at >= len(plan.Stages) {
			return fmt.Errorf("node %q: stage %d of %d", problem.Nodes[node].Name, at, len(plan.Stages))
		}
		if choice := plan.Choice[node]; choice < 0 || choice >= len(problem.choices(node, plan.Stages[at].Tensor)) {
			return fmt.Errorf("node %q: there is no choice %d on %d devices", problem.Nodes[node].Name, choice, plan.Stages[at].Tensor)
		}
	}
	return nil
}
