package stages

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// hard draws nodes whose choices trade about as well as each other, for which
// a search for the best of them is long.
func hard(rng *rand.Rand, n int) *Problem {
	p := &Problem{Devices: 1, Capacity: math.Inf(1)}
	for v := range n {
		node := Node{Name: fmt.Sprint(v), Choices: []Choice{{Time: 100, Fixed: 200}}}
		saved, more := 0, 0
		for range 1 + rng.IntN(3) {
			saved += 1 + rng.IntN(60)
			more = max(more+1, saved+rng.IntN(5)-2)
			if saved <= 200 {
				node.Choices = append(node.Choices, Choice{Time: float64(100 + more), Fixed: float64(200 - saved)})
			}
		}
		p.Nodes = append(p.Nodes, node)
	}
	return p
}

// leastTime is the least time that saves so many bytes, by dynamic programming
// over the bytes.
func leastTime(p *Problem, need int) float64 {
	best := make([]float64, need+1) // by bytes still to save
	for b := range best {
		best[b] = math.Inf(1)
	}
	best[need] = 0
	for _, node := range p.Nodes {
		next := make([]float64, need+1)
		for b := range next {
			next[b] = math.Inf(1)
		}
		for b, t := range best {
			for _, c := range node.Choices {
				left := max(0, b-int(node.Choices[0].Fixed-c.Fixed))
				next[left] = min(next[left], t+c.Time-node.Choices[0].Time)
			}
		}
		best = next
	}
	return best[0]
}

// TestKnapsackBounds: the relaxation, and the exact search whether it came to
// its end or not, bound the least time from both sides; only a search that
// came to its end says that the two are one.
func TestKnapsackBounds(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(91, 92))
	ended, open := 0, 0
	for i := range 1500 {
		p := hard(rng, 1+rng.IntN(2+38*rng.IntN(2)))
		most := 0
		for v := range p.Nodes {
			most += int(p.Nodes[v].Choices[0].Fixed - p.Nodes[v].Choices[len(p.Nodes[v].Choices)-1].Fixed)
		}
		need := 1 + rng.IntN(most+1)
		want := leastTime(p, need)
		k := knapsack{view: newView(p, 1), member: func(int) bool { return true }}
		if i%2 == 0 {
			k.budget = 1 + rng.IntN(60)
		}
		low, high := k.relax(float64(need))
		lower, upper, option := k.solve(float64(need))
		if math.IsInf(want, 1) {
			if !math.IsInf(low, 1) || !math.IsInf(lower, 1) {
				t.Fatalf("%d: %d bytes cannot be saved, and are said to take %v", i, need, lower)
			}
			continue
		}
		const rounding = 1e-9
		if low > want+rounding || high < want-rounding || lower > want+rounding || upper < want-rounding || lower < low-rounding {
			t.Fatalf("%d: %d bytes of %d nodes: the relaxation says %v to %v, the search %v to %v; the least time is %v", i, need, len(p.Nodes), low, high, lower, upper, want)
		}
		saved, time := 0., 0.
		for v, o := range option {
			saved, time = saved+k.nodes[v].memory[0]-k.nodes[v].memory[o], time+k.nodes[v].time[o]-k.nodes[v].time[0]
		}
		if saved < float64(need) || math.Abs(time-upper) > rounding {
			t.Fatalf("%d: the options save %v of %d bytes in %v, said %v", i, saved, need, time, upper)
		}
		switch {
		case k.budget > 0:
			ended++
			if math.Abs(lower-want) > rounding || math.Abs(upper-want) > rounding {
				t.Fatalf("%d: the search ended with %v to %v, the least time is %v", i, lower, upper, want)
			}
		case upper > want+rounding:
			open++ // here a bound that is taken from the answer would be wrong
		}
	}
	if ended < 200 || open < 10 {
		t.Errorf("%d searches ended, %d did not and missed the best", ended, open)
	}
}

// TestAskIsABound: what a question did not reach, no pipeline has, nor any up
// to the next time that it names.
func TestAskIsABound(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(93, 94))
	refused, exact := 0, 0
	for i := range 1500 {
		p := drawStages(rng)
		w, err := newWeb(p)
		if err != nil {
			t.Fatal(err)
		}
		s := newSearch(p, w, enumerate(context.Background(), w, everything, math.MaxInt))
		best := LeastOf(p)
		for range 4 {
			limit := float64(rng.IntN(40)) / 2
			q := s.ask(context.Background(), limit, p.Devices)
			switch {
			case q.reached() && !q.open && best > limit:
				t.Fatalf("%d: a pipeline within %v is said to be there, and the best takes %v", i, limit, best)
			case !q.reached() && (best <= limit || q.next > best || q.next <= limit):
				t.Fatalf("%d: nothing is said to be within %v, the next at %v, and the best takes %v", i, limit, q.next, best)
			case !q.reached():
				refused++
				if q.next == best {
					exact++
				}
			}
		}
		q := s.ask(context.Background(), math.Inf(1), p.Devices) // by the memory alone
		if q.reached() == math.IsInf(best, 1) {
			t.Fatalf("%d: whether some pipeline fits is said to be %t, and the best takes %v", i, q.reached(), best)
		}
		if !q.reached() && q.nextMemory > p.Capacity {
			more := *p
			more.Capacity = q.nextMemory - 0.5
			if least := LeastOf(&more); !math.IsInf(least, 1) {
				t.Fatalf("%d: nothing is said to fit under %v B, and %v B are enough", i, q.nextMemory, more.Capacity)
			}
		}
		v := &solver{problem: p, network: w}
		v.Value = math.Inf(1)
		v.bounds()
		if v.LowerBound > best {
			t.Fatalf("%d: %s says that nothing is below %v, and the best takes %v", i, v.Bound, v.LowerBound, best)
		}
	}
	if refused < 1000 || exact < 200 {
		t.Errorf("%d refused, in %d the next is the best", refused, exact)
	}
}

// drawStages is a problem small enough to try out, in whole numbers; half of
// them without transfers, and half without a capacity.
func drawStages(rng *rand.Rand) *Problem {
	p := &Problem{Devices: 1 + rng.IntN(3), Capacity: math.Inf(1)}
	if rng.IntN(2) == 0 {
		p.Capacity = float64(3 + rng.IntN(10+30*rng.IntN(2)))
	}
	free := rng.IntN(2) == 0
	for v := range 1 + rng.IntN(5) {
		node := Node{Name: fmt.Sprint(v)}
		for range 1 + rng.IntN(2) {
			node.Choices = append(node.Choices, Choice{Time: float64(rng.IntN(9)), InFlight: float64(rng.IntN(6)), Fixed: float64(rng.IntN(6))})
		}
		p.Nodes = append(p.Nodes, node)
		for u := range v {
			if rng.IntN(2) == 0 {
				e := Edge{From: u, To: v}
				if !free {
					e.Send, e.Receive = float64(rng.IntN(4)), float64(rng.IntN(4))
				}
				p.Edges = append(p.Edges, e)
			}
		}
	}
	return p
}

// LeastOf tries every stage and choice of every node.
func LeastOf(p *Problem) float64 {
	best := math.Inf(1)
	stage, choice := make([]int, len(p.Nodes)), make([]int, len(p.Nodes))
	var put func(v int)
	put = func(v int) {
		if v == len(p.Nodes) {
			if _, largest, err := p.Score(stage, choice); err == nil {
				best = min(best, largest)
			}
			return
		}
		for stage[v] = range p.Devices {
			for choice[v] = range p.Nodes[v].Choices {
				put(v + 1)
			}
		}
	}
	put(0)
	return best
}
