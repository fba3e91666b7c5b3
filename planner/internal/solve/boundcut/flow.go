package boundcut

import "math"

// flow finds a maximum flow by blocking flows (Dinic 1970).
type flow struct {
	out   [][]int32 // arcs of each node; arc^1 is the reverse
	head  []int32
	left  []float64 // what an arc can still carry
	level []int32   // distance from the source; −1: cut off
	next  []int
	queue []int32
}

func newFlow(nodes int) *flow {
	return &flow{out: make([][]int32, nodes), level: make([]int32, nodes), next: make([]int, nodes)}
}

// arc adds an arc and its reverse.
func (flowing *flow) arc(from, to int, forth, back float64) {
	flowing.out[from] = append(flowing.out[from], int32(len(flowing.head)))
	flowing.out[to] = append(flowing.out[to], int32(len(flowing.head)+1))
	flowing.head = append(flowing.head, int32(to), int32(from))
	flowing.left = append(flowing.left, forth, back)
}

// tiny is what an arc must be able to carry to count: less is rounding.
const tiny = 1e-12

// run sends what it can and returns its amount. It is +Inf where nothing
// limits it.
func (flowing *flow) run(source, sink int) float64 {
	total := 0.0
	for flowing.levels(source, sink) {
		clear(flowing.next)
		for {
			sent := flowing.send(source, sink, math.Inf(1))
			if sent <= 0 {
				break
			}
			if math.IsInf(sent, 1) {
				return sent
			}
			total += sent
		}
	}
	return total
}

// levels measures distances and tells whether the sink is reached.
func (flowing *flow) levels(source, sink int) bool {
	for node := range flowing.level {
		flowing.level[node] = -1
	}
	flowing.level[source] = 0
	flowing.queue = append(flowing.queue[:0], int32(source))
	for i := 0; i < len(flowing.queue); i++ {
		node := flowing.queue[i]
		for _, arc := range flowing.out[node] {
			if next := flowing.head[arc]; flowing.left[arc] > tiny && flowing.level[next] < 0 {
				flowing.level[next] = flowing.level[node] + 1
				flowing.queue = append(flowing.queue, next)
			}
		}
	}
	return flowing.level[sink] >= 0
}

// send pushes at most room along one path of ever higher levels.
func (flowing *flow) send(node, sink int, room float64) float64 {
	if node == sink {
		return room
	}
	for ; flowing.next[node] < len(flowing.out[node]); flowing.next[node]++ {
		a := flowing.out[node][flowing.next[node]]
		next := flowing.head[a]
		if flowing.left[a] <= tiny || flowing.level[next] != flowing.level[node]+1 {
			continue
		}
		if sent := flowing.send(int(next), sink, min(room, flowing.left[a])); sent > 0 {
			flowing.left[a] -= sent
			flowing.left[a^1] += sent
			return sent
		}
	}
	return 0
}
