package latency

import (
	"fmt"
	"math"
)

// Call is one call of an accelerator.
type Call struct {
	Nodes          int
	Start, End     float64
	Time, Transfer float64
	Size           float64
}

// Score judges an assignment from the definitions alone: it returns when each
// call starts and ends and when the last node is done, and an error where the
// assignment breaks a rule. The time at which a node's output is to be had is
// asked of the nodes that it reads, back to the first, so that calls that wait
// for each other are met on the way.
func (problem *Problem) Score(call []int) (calls []Call, latency float64, err error) {
	if len(call) != len(problem.Nodes) {
		return nil, 0, fmt.Errorf("%d calls for %d nodes", len(call), len(problem.Nodes))
	}
	judge := &judge{Problem: problem, call: call, calls: make([]Call, len(problem.Accelerators())*problem.calls()), reads: make([][]int, len(call)), readBy: make([][]int, len(call)), members: make(map[int][]int)}
	for _, edge := range problem.Edges {
		judge.reads[edge[1]] = append(judge.reads[edge[1]], edge[0])
		judge.readBy[edge[0]] = append(judge.readBy[edge[0]], edge[1])
	}
	if err := judge.rules(); err != nil {
		return nil, 0, err
	}
	judge.transfers()
	for node := range call {
		judge.members[judge.vertex(node)] = append(judge.members[judge.vertex(node)], node)
	}
	judge.done = make(map[int]float64)
	for node := range call {
		end, err := judge.end(judge.vertex(node))
		if err != nil {
			return nil, 0, err
		}
		latency = max(latency, end)
	}
	return judge.calls, latency, nil
}

type judge struct {
	*Problem

	call          []int
	calls         []Call
	reads, readBy [][]int
	members       map[int][]int   // nodes, by vertex
	done          map[int]float64 // by vertex; NaN while it is asked for
}

// vertex is what a node runs in: its call, or itself on a CPU.
func (judge *judge) vertex(node int) int {
	if judge.call[node] == OnCPU {
		return len(judge.calls) + node
	}
	return judge.call[node]
}

// rules are those that say nothing of time.
func (judge *judge) rules() error {
	kinds, groups := judge.Accelerators(), make(map[int]int)
	held := make([]float64, len(kinds))
	for node, call := range judge.call {
		kind, on := judge.cpu(), OnCPU
		switch {
		case call < OnCPU || call >= len(judge.calls):
			return fmt.Errorf("node %q: there is no call %d", judge.Nodes[node].Name, call)
		case call != OnCPU:
			on = call / judge.Problem.calls()
			kind = kinds[on]
			held[on] += judge.Nodes[node].Size
			judge.calls[call].Nodes++
			judge.calls[call].Size += judge.Nodes[node].Size
			judge.calls[call].Time += judge.Nodes[node].Time[kind]
		}
		if kind < 0 || math.IsInf(judge.Nodes[node].Time[kind], 1) {
			return fmt.Errorf("node %q cannot run where it is put", judge.Nodes[node].Name)
		}
		if before, known := groups[judge.Nodes[node].Group]; known && before != on {
			return fmt.Errorf("node %q does not share a device with its group", judge.Nodes[node].Name)
		}
		groups[judge.Nodes[node].Group] = on
	}
	for device, size := range held {
		if capacity := judge.Kinds[kinds[device]].Capacity; size > capacity*(1+1e-12) {
			return fmt.Errorf("accelerator %d holds %.0f bytes and may hold %.0f", device, size, capacity)
		}
	}
	return nil
}

// transfers are what each call fetches, an output once, and sends, likewise.
func (judge *judge) transfers() {
	for node, readers := range judge.readBy {
		pays := make(map[int]bool)
		for _, reader := range readers {
			if judge.vertex(reader) != judge.vertex(node) {
				pays[judge.call[node]] = true
				pays[judge.call[reader]] = true
			}
		}
		for call := range pays {
			if call != OnCPU {
				judge.calls[call].Transfer += judge.Nodes[node].Transfer
			}
		}
	}
}

// end is when a vertex is done.
func (judge *judge) end(vertex int) (float64, error) {
	if end, known := judge.done[vertex]; known {
		if math.IsNaN(end) {
			return 0, fmt.Errorf("what runs in a call is not contiguous, or calls wait for each other: call %d waits for itself", vertex)
		}
		return end, nil
	}
	judge.done[vertex] = math.NaN()
	start := 0.0
	for _, node := range judge.members[vertex] {
		for _, from := range judge.reads[node] {
			if judge.vertex(from) == vertex {
				continue
			}
			ready, err := judge.end(judge.vertex(from))
			if err != nil {
				return 0, err
			}
			start = max(start, ready)
		}
	}
	if vertex >= len(judge.calls) {
		judge.done[vertex] = start + judge.Nodes[vertex-len(judge.calls)].Time[judge.cpu()]
		return judge.done[vertex], nil
	}
	call := &judge.calls[vertex]
	if vertex%judge.Problem.calls() > 0 {
		ready, err := judge.end(vertex - 1)
		if err != nil {
			return 0, err
		}
		start = max(start, ready)
	}
	call.Start, call.End = start, start+call.Time+call.Transfer
	judge.done[vertex] = call.End
	return call.End, nil
}
