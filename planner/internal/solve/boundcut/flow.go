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
func (f *flow) arc(from, to int, forth, back float64) {
	f.out[from] = append(f.out[from], int32(len(f.head)))
	f.out[to] = append(f.out[to], int32(len(f.head)+1))
	f.head = append(f.head, int32(to), int32(from))
	f.left = append(f.left, forth, back)
}

// tiny is what an arc must be able to carry to count: less is rounding.
const tiny = 1e-12

// run sends what it can and returns its amount. It is +Inf where nothing
// limits it.
func (f *flow) run(source, sink int) float64 {
	total := 0.0
	for f.levels(source, sink) {
		clear(f.next)
		for {
			sent := f.send(source, sink, math.Inf(1))
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
func (f *flow) levels(source, sink int) bool {
	for v := range f.level {
		f.level[v] = -1
	}
	f.level[source] = 0
	f.queue = append(f.queue[:0], int32(source))
	for i := 0; i < len(f.queue); i++ {
		v := f.queue[i]
		for _, a := range f.out[v] {
			if u := f.head[a]; f.left[a] > tiny && f.level[u] < 0 {
				f.level[u] = f.level[v] + 1
				f.queue = append(f.queue, u)
			}
		}
	}
	return f.level[sink] >= 0
}

// send pushes at most room along one path of ever higher levels.
func (f *flow) send(v, sink int, room float64) float64 {
	if v == sink {
		return room
	}
	for ; f.next[v] < len(f.out[v]); f.next[v]++ {
		a := f.out[v][f.next[v]]
		u := f.head[a]
		if f.left[a] <= tiny || f.level[u] != f.level[v]+1 {
			continue
		}
		if sent := f.send(int(u), sink, min(room, f.left[a])); sent > 0 {
			f.left[a] -= sent
			f.left[a^1] += sent
			return sent
		}
	}
	return 0
}
