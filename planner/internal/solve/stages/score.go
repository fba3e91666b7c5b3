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
func (l Load) Total() float64 { return l.Time + l.Transfers }

// rounding is what sums of the same numbers in another order may differ by.
const rounding = 1e-12

// Score judges a pipeline from the definitions alone: stage[node] counts from
// the first stage, choice[node] is an index of the node's choices. It returns
// the load of each stage and the largest time, and an error where the pipeline
// breaks a rule: more stages than devices, a stage that is empty, an edge
// against the order, a capacity exceeded.
func (p *Problem) Score(stage, choice []int) (loads []Load, largest float64, err error) {
	if len(stage) != len(p.Nodes) || len(choice) != len(p.Nodes) {
		return nil, 0, fmt.Errorf("%d stages and %d choices for %d nodes", len(stage), len(choice), len(p.Nodes))
	}
	count, err := p.valid(stage, choice)
	if err != nil {
		return nil, 0, err
	}
	loads = make([]Load, count)
	for s := range loads {
		loads[s].InFlight = count - s
	}
	for v, s := range stage {
		c := p.Nodes[v].Choices[choice[v]]
		loads[s].Time += c.Time
		loads[s].Memory += float64(count-s)*c.InFlight + c.Fixed
	}
	for _, e := range p.Edges {
		from, to := stage[e.From], stage[e.To]
		if from > to {
			return nil, 0, fmt.Errorf("node %q in stage %d reads %q in stage %d", p.Nodes[e.To].Name, to, p.Nodes[e.From].Name, from)
		}
		if from < to {
			loads[from].Transfers += e.Send
			loads[to].Transfers += e.Receive
		}
	}
	for s, l := range loads {
		largest = max(largest, l.Total())
		if l.Memory > p.Capacity*(1+rounding) {
			err = fmt.Errorf("stage %d holds %.0f bytes and may hold %.0f", s, l.Memory, p.Capacity)
		}
	}
	return loads, largest, err
}

// valid is the number of stages, none of them empty.
func (p *Problem) valid(stage, choice []int) (count int, err error) {
	filled := make(map[int]bool)
	for v, s := range stage {
		if s < 0 || s >= p.Devices {
			return 0, fmt.Errorf("node %q: stage %d of %d devices", p.Nodes[v].Name, s, p.Devices)
		}
		if choice[v] < 0 || choice[v] >= len(p.Nodes[v].Choices) {
			return 0, fmt.Errorf("node %q: there is no choice %d", p.Nodes[v].Name, choice[v])
		}
		filled[s] = true
		count = max(count, s+1)
	}
	for s := 0; len(filled) < count; s++ {
		if !filled[s] {
			return 0, fmt.Errorf("stage %d of %d is empty", s, count)
		}
	}
	return count, nil
}
