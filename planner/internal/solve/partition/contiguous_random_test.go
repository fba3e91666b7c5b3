package partition

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// drawProblem makes a small problem with groups, a backward pass, nodes that
// cannot run everywhere, capacities that bind and devices that pay nothing.
func drawProblem(t *rapid.T) *Problem {
	// Brute force takes devices to the power of nodes.
	shape := rapid.SampledFrom([][2]int{{8, 3}, {4, 6}}).Draw(t, "most nodes, kinds")
	n := rapid.IntRange(1, shape[0]).Draw(t, "nodes")
	p := &Problem{}
	for k := range rapid.IntRange(1, shape[1]).Draw(t, "kinds") {
		capacity := math.Inf(1)
		if rapid.Bool().Draw(t, "capped") {
			capacity = float64(rapid.IntRange(1, 12).Draw(t, "capacity"))
		}
		p.Kinds = append(p.Kinds, Kind{
			Name: fmt.Sprintf("kind%d", k), Count: rapid.IntRange(0, 2).Draw(t, "count"),
			Capacity: capacity, FreeTransfers: rapid.Bool().Draw(t, "free"),
		})
	}
	p.Kinds[0].Count++
	forward := rapid.IntRange(1, n).Draw(t, "forward")
	for v := range n {
		node := Node{Name: fmt.Sprintf("n%d", v), Backward: v >= forward}
		longest := rapid.SampledFrom([]int{0, 9, 9}).Draw(t, "longest")
		for range p.Kinds {
			time := float64(rapid.IntRange(0, longest).Draw(t, "time"))
			if rapid.IntRange(0, 9).Draw(t, "runs") == 0 {
				time = math.Inf(1)
			}
			node.Time = append(node.Time, time)
		}
		node.Size = float64(rapid.IntRange(0, 4).Draw(t, "size"))
		node.Transfer = float64(rapid.IntRange(0, 5).Draw(t, "transfer")) / 2
		node.Group = rapid.IntRange(0, n).Draw(t, "group")
		p.Nodes = append(p.Nodes, node)
		for u := range v {
			if rapid.IntRange(0, 2).Draw(t, "edge") == 0 {
				p.Edges = append(p.Edges, [2]int{u, v})
			}
		}
	}
	return p
}

// bruteForce tries every assignment of groups to devices. Contiguous means
// that the devices can be put in an order that every edge of the forward pass
// keeps; groups of backward nodes alone are ordered by their edges turned
// round.
func bruteForce(p *Problem) float64 {
	forward := make(map[int]bool)
	var groups []int
	at := make(map[int]int)
	for _, n := range p.Nodes {
		if _, known := at[n.Group]; !known {
			at[n.Group] = len(groups)
			groups = append(groups, n.Group)
		}
		forward[n.Group] = forward[n.Group] || !n.Backward
	}
	device := make([]int, len(groups))
	place := make([]int, len(p.Nodes))
	best := math.Inf(1)
	for {
		for v := range place {
			place[v] = device[at[p.Nodes[v].Group]]
		}
		if p.inSomeOrder(place, forward) {
			if _, largest, err := p.Score(place); err == nil {
				best = min(best, largest)
			}
		}
		i := 0
		for ; i < len(device) && device[i] == p.Devices()-1; i++ {
			device[i] = 0
		}
		if i == len(device) {
			return best
		}
		device[i]++
	}
}

func (p *Problem) inSomeOrder(place []int, forward map[int]bool) bool {
	next := make([]map[int]bool, p.Devices())
	for d := range next {
		next[d] = make(map[int]bool)
	}
	for _, e := range p.Edges {
		a, b := &p.Nodes[e[0]], &p.Nodes[e[1]]
		from, to := place[e[0]], place[e[1]]
		if a.Backward && b.Backward && (!forward[a.Group] || !forward[b.Group]) {
			from, to = to, from
		} else if a.Backward || b.Backward {
			continue
		}
		if from != to {
			next[from][to] = true
		}
	}
	// Take away devices that nothing leads to, until none is left.
	for left := len(next); left > 0; left-- {
		at := -1
		for d := range next {
			led := next[d] == nil
			for o := range next {
				led = led || next[o][d]
			}
			if !led {
				at = d
			}
		}
		if at < 0 {
			return false
		}
		next[at] = nil
	}
	return true
}

func TestContiguousEqualsBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		want := bruteForce(p)
		got, err := Contiguous(context.Background(), p, Settings{})
		if math.IsInf(want, 1) {
			var infeasible *InfeasibleError
			if !errors.As(err, &infeasible) {
				t.Fatalf("nothing is possible, and the answer is %+v, %v", got, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.Largest-want) > 1e-9 || !got.Optimal || got.LowerBound > want || got.LowerBound < want*(1-1e-8) {
			t.Fatalf("largest load %v (bound %v, optimal %v), want %v", got.Largest, got.LowerBound, got.Optimal, want)
		}
		forward := make(map[int]bool)
		for _, n := range p.Nodes {
			forward[n.Group] = forward[n.Group] || !n.Backward
		}
		if _, largest, err := p.Score(got.Place); err != nil || largest != got.Largest || !p.inSomeOrder(got.Place, forward) {
			t.Fatalf("%v scores %v, %v", got.Place, largest, err)
		}
	})
}
