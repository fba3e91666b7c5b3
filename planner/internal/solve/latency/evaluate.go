package latency

import "math"

// evaluator works out the latency of an assignment, some 100,000 times a
// second for the graphs of a few hundred nodes: every node and edge is looked
// at twice. What calls and CPU nodes wait for is counted down (Kahn, 1962);
// one whose count does not come to 0 is on a circle.
type evaluator struct {
	*instance

	load, ready []float64 // of calls: what it takes, when its inputs are there
	waits       []int32   // of calls: edges that have not come in
	paid        []int32   // of calls: the last node whose output it fetches
	first       []int32   // of calls: a node in it; -1: none
	next        []int32   // of nodes: another node in its call
	pending     []int32   // of nodes on CPUs, as waits
	done        []float64 // of nodes on CPUs: when its inputs are there, then when it is done
	queue       []int32   // vertices whose inputs are there: calls, then nodes
	because     []int32   // of vertices: what its last input came from; -1: none
	last        int32     // the vertex that is done last
	ends        float64   // Σ of the calls' ends, to tell equal latencies apart
}

func newEvaluator(in *instance) *evaluator {
	nodes := len(in.unitOf)
	return &evaluator{
		instance: in,
		load:     make([]float64, in.slots), ready: make([]float64, in.slots),
		waits: make([]int32, in.slots), paid: make([]int32, in.slots), first: make([]int32, in.slots),
		next: make([]int32, nodes), pending: make([]int32, nodes), done: make([]float64, nodes),
		queue: make([]int32, 0, nodes+in.slots), because: make([]int32, nodes+in.slots),
	}
}

// latency is when the last node is done; +Inf where calls wait for each other.
// slot is the call of each unit.
func (eval *evaluator) latency(slot []int32) float64 {
	eval.begin(slot)
	return eval.run(slot)
}

// begin adds up loads, and counts what everything waits for.
func (eval *evaluator) begin(slot []int32) {
	for call := range eval.load {
		eval.load[call], eval.ready[call], eval.waits[call], eval.paid[call], eval.first[call] = 0, 0, 0, -1, -1
		eval.because[call] = -1
		if call%eval.calls > 0 {
			eval.waits[call] = 1
		}
	}
	for unit, call := range slot {
		if call >= 0 {
			eval.load[call] += eval.time[eval.kinds[int(call)/eval.calls]][unit]
		}
	}
	for node := range eval.next {
		own := slot[eval.unitOf[node]]
		crosses := false
		for _, reader := range eval.readBy[node] {
			call := slot[eval.unitOf[reader]]
			if call == own && own >= 0 {
				continue
			}
			crosses = true
			if call < 0 {
				continue
			}
			eval.waits[call]++
			if eval.paid[call] != int32(node) {
				eval.paid[call] = int32(node)
				eval.load[call] += eval.transfer[node]
			}
		}
		if own < 0 {
			eval.pending[node], eval.done[node], eval.because[eval.slots+node] = int32(len(eval.reads[node])), 0, -1
			continue
		}
		eval.next[node], eval.first[own] = eval.first[own], int32(node)
		if crosses {
			eval.load[own] += eval.transfer[node]
		}
	}
}

// run plays what begin counted.
func (eval *evaluator) run(slot []int32) float64 {
	eval.queue = eval.queue[:0]
	for call, waits := range eval.waits {
		if waits == 0 {
			eval.queue = append(eval.queue, int32(call))
		}
	}
	left := eval.slots
	for node := range eval.next {
		if slot[eval.unitOf[node]] < 0 {
			left++
			if eval.pending[node] == 0 {
				eval.queue = append(eval.queue, int32(eval.slots+node))
			}
		}
	}
	latest := 0.0
	eval.last, eval.ends = -1, 0
	for at := 0; at < len(eval.queue); { // it grows
		vertex := eval.queue[at]
		at++
		var end float64
		if int(vertex) < eval.slots {
			end = eval.ready[vertex] + eval.load[vertex]
			eval.ends += end
			eval.sendCall(vertex, end, slot)
		} else {
			node := vertex - int32(eval.slots)
			end = eval.done[node] + eval.cpuTime[node]
			eval.send(vertex, node, OnCPU, end, slot)
		}
		if end > latest || eval.last < 0 {
			latest, eval.last = end, vertex
		}
	}
	if len(eval.queue) < left {
		return math.Inf(1)
	}
	return latest
}

func (eval *evaluator) sendCall(call int32, end float64, slot []int32) {
	for node := eval.first[call]; node >= 0; node = eval.next[node] {
		eval.send(call, node, call, end, slot)
	}
	if after := call + 1; int(after)%eval.calls > 0 {
		eval.arrive(after, call, end)
	}
}

// send hands a node's output on.
func (eval *evaluator) send(vertex, node, own int32, end float64, slot []int32) {
	for _, reader := range eval.readBy[node] {
		call := slot[eval.unitOf[reader]]
		switch {
		case call < 0:
			if end > eval.done[reader] {
				eval.done[reader], eval.because[eval.slots+int(reader)] = end, vertex
			}
			eval.pending[reader]--
			if eval.pending[reader] == 0 {
				eval.queue = append(eval.queue, int32(eval.slots)+reader)
			}
		case call != own:
			eval.arrive(call, vertex, end)
		}
	}
}

func (eval *evaluator) arrive(call, from int32, end float64) {
	if end > eval.ready[call] {
		eval.ready[call], eval.because[call] = end, from
	}
	eval.waits[call]--
	if eval.waits[call] == 0 {
		eval.queue = append(eval.queue, call)
	}
}

// critical appends the units of the vertices, back from the one that is done
// last, each of which waited for the one before.
func (eval *evaluator) critical(units []int32) []int32 {
	for vertex := eval.last; vertex >= 0; vertex = eval.because[vertex] {
		if int(vertex) >= eval.slots {
			units = append(units, eval.unitOf[int(vertex)-eval.slots])
			continue
		}
		for node := eval.first[vertex]; node >= 0; node = eval.next[node] {
			units = append(units, eval.unitOf[node])
		}
	}
	return units
}
