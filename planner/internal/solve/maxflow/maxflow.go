// Package maxflow finds maximum flows and minimum cuts in whole numbers, by
// blocking flows (Dinic, "Algorithm for solution of a problem of maximum flow in
// a network with power estimation", Soviet Mathematics Doklady 11, 1970).
package maxflow

import "math"

// Unlimited is the capacity of an arc that no cut may cross.
const Unlimited = math.MaxInt64 / 4

// Network is a graph with capacities: nodes are numbered from 0, arcs as they
// come, an arc and its reverse one after the other.
type Network struct {
	// Left is what an arc can still carry; set it before each run. An even
	// arc's flow is what the odd one after it has gained.
	Left []int64
	head []int32
	// first are the arcs of each node, in order; they are sorted at the first
	// run after an arc was added.
	first, order []int32
	nodes        int
	level, next  []int32
	queue        []int32
}

// New is a network without arcs.
func New(nodes int) *Network { return &Network{nodes: nodes} }

// Node adds a node and returns its number.
func (network *Network) Node() int32 {
	network.nodes++
	return int32(network.nodes - 1)
}

// Arc adds an arc and its reverse, both of capacity 0, and returns its number;
// the reverse is one more.
func (network *Network) Arc(from, to int32) int {
	network.head = append(network.head, to, from)
	network.Left = append(network.Left, 0, 0)
	network.first = nil
	return len(network.head) - 2
}

// Ends are the nodes that an arc joins.
func (network *Network) Ends(arc int) (from, to int32) { return network.head[arc^1], network.head[arc] }

// sort lists the arcs of each node.
func (network *Network) sort() {
	network.first = make([]int32, network.nodes+1)
	for arc := range network.head {
		network.first[network.head[arc^1]+1]++
	}
	for node := range network.nodes {
		network.first[node+1] += network.first[node]
	}
	at := append([]int32(nil), network.first...)
	network.order = make([]int32, len(network.head))
	for arc := range network.head {
		from := network.head[arc^1]
		network.order[at[from]] = int32(arc)
		at[from]++
	}
	network.level, network.next = make([]int32, network.nodes), make([]int32, network.nodes)
}

// Run sends what it can from the source to the sink and returns its amount:
// [Unlimited] or more where nothing limits it.
func (network *Network) Run(source, sink int32) int64 {
	return network.RunTo(source, sink, Unlimited)
}

// RunTo ends as soon as so much is sent, with no more.
func (network *Network) RunTo(source, sink int32, enough int64) int64 {
	if network.first == nil {
		network.sort()
	}
	total := int64(0)
	for total < enough && network.levels(source, sink) {
		copy(network.next, network.first)
		for total < enough {
			sent := network.send(source, sink, enough-total)
			if sent == 0 {
				break
			}
			total += sent
		}
	}
	return total
}

// Inside says, after a run, that a node is on the source's side of the smallest
// minimum cut.
func (network *Network) Inside(node int32) bool { return network.level[node] >= 0 }

// levels measures distances from the source and tells whether the sink is
// reached.
func (network *Network) levels(source, sink int32) bool {
	for node := range network.level {
		network.level[node] = -1
	}
	network.level[source] = 0
	network.queue = append(network.queue[:0], source)
	for i := 0; i < len(network.queue); i++ {
		node := network.queue[i]
		for _, arc := range network.order[network.first[node]:network.first[node+1]] {
			if to := network.head[arc]; network.Left[arc] > 0 && network.level[to] < 0 {
				network.level[to] = network.level[node] + 1
				network.queue = append(network.queue, to)
			}
		}
	}
	return network.level[sink] >= 0
}

// send pushes at most room along one path of ever higher levels.
func (network *Network) send(node, sink int32, room int64) int64 {
	if node == sink {
		return room
	}
	for end := network.first[node+1]; network.next[node] < end; network.next[node]++ {
		arc := network.order[network.next[node]]
		to := network.head[arc]
		if network.Left[arc] == 0 || network.level[to] != network.level[node]+1 {
			continue
		}
		if sent := network.send(to, sink, min(room, network.Left[arc])); sent > 0 {
			network.Left[arc] -= sent
			network.Left[arc^1] += sent
			return sent
		}
	}
	return 0
}
