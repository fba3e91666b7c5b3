package stages

import "fmt"

// Load is what one stage does and holds.
type Load struct {
	// Time is that of the choices, Transfers that of sending and receiving.
	Time, Transfers float64
	// Memory is in bytes, InFlight the micro-batches in it.
	Memory   float64
	InFlight int
}

// Total is the stage's time for a micro-batch.
func (load Load) Total() float64 { return load.Time + load.Transfers }

// rounding is what sums of the same numbers in another order may differ by.
const rounding = 1e-12

// Score judges a pipeline from the definitions alone: stage[node] counts from
// the first stage, choice[node] is an index of the node's choices. It returns
// the load of each stage and the largest time, and an error where the pipeline
// breaks a rule: more stages than devices, a stage that is empty, an edge
// against the order, a capacity exceeded.
func (problem *Problem) Score(stage, choice []int) (loads []Load, largest float64, err error) {
	if len(stage) != len(problem.Nodes) || len(choice) != len(problem.Nodes) {
		return nil, 0, fmt.Errorf("%d stages and %d choices for %d nodes", len(stage), len(choice), len(problem.Nodes))
	}
	count, err := problem.valid(stage, choice)
	if err != nil {
		return nil, 0, err
	}
	loads = make([]Load, count)
	for at := range loads {
		loads[at].InFlight = count - at
	}
	for node, at := range stage {
		c := problem.Nodes[node].Choices[choice[node]]
		loads[at].Time += c.Time
		loads[at].Memory += float64(count-at)*c.InFlight + c.Fixed
	}
	for _, edge := range problem.Edges {
		from, to := stage[edge.From], stage[edge.To]
		if from > to {
			return nil, 0, fmt.Errorf("node %q in stage %d reads %q in stage %d", problem.Nodes[edge.To].Name, to, problem.Nodes[edge.From].Name, from)
		}
		if from < to {
			loads[from].Transfers += edge.Send
			loads[to].Transfers += edge.Receive
		}
	}
	for at, load := range loads {
		largest = max(largest, load.Total())
		if load.Memory > problem.Capacity*(1+rounding) {
			err = fmt.Errorf("stage %d holds %.0f bytes and may hold %.0f", at, load.Memory, problem.Capacity)
		}
	}
	return loads, largest, err
}

// valid is the number of stages, none of them empty.
func (problem *Problem) valid(stage, choice []int) (count int, err error) {
	filled := make(map[int]bool)
	for node, at := range stage {
		if at < 0 || at >= problem.Devices {
			return 0, fmt.Errorf("node %q: stage %d of %d devices", problem.Nodes[node].Name, at, problem.Devices)
		}
		if choice[node] < 0 || choice[node] >= len(problem.Nodes[node].Choices) {
			return 0, fmt.Errorf("node %q: there is no choice %d", problem.Nodes[node].Name, choice[node])
		}
		filled[at] = true
		count = max(count, at+1)
	}
	for at := 0; len(filled) < count; at++ {
		if !filled[at] {
			return 0, fmt.Errorf("stage %d of %d is empty", at, count)
		}
	}
	return count, nil
}
