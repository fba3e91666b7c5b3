package stages

import (
	"math"
	"math/rand/v2"
	"testing"
)

// hard returns nodes whose choices all save about equal bytes per time, so the search for the best
// is long.
func hard(rng *rand.Rand, n int) [][]option {
	var nodes [][]option
	for range n {
		node := []option{{Time: 100, Memory: 200}}
		saved, more := 0, 0
		for range 1 + rng.IntN(3) {
			saved += 1 + rng.IntN(60)
			more = max(more+1, saved+rng.IntN(5)-2)
			if saved <= 200 {
				node = append(node, option{Time: float64(100 + more), Memory: float64(200 - saved)})
			}
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// leastTime returns the least time that saves so many bytes, by dynamic programming over the bytes.
func leastTime(nodes [][]option, need int) float64 {
	best := make([]float64, need+1) // by bytes still to save
	for b := range best {
		best[b] = math.Inf(1)
	}
	best[need] = 0
	for _, node := range nodes {
		next := make([]float64, need+1)
		for b := range next {
			next[b] = math.Inf(1)
		}
		for b, t := range best {
			for _, c := range node {
				left := max(0, b-int(node[0].Memory-c.Memory))
				next[left] = min(next[left], t+c.Time-node[0].Time)
			}
		}
		best = next
	}
	return best[0]
}

// TestKnapsackBounds: the relaxation and the exact search bound the least time from both sides,
// even if the search is stopped. Only a complete search reports that both bounds are equal.
func TestKnapsackBounds(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(91, 92))
	ended, listed, open := 0, 0, 0
	for i := range 1500 {
		nodes := hard(rng, 1+rng.IntN(2+38*rng.IntN(2)))
		most := 0
		for _, node := range nodes {
			most += int(node[0].Memory - node[len(node)-1].Memory)
		}
		need := 1 + rng.IntN(most+1)
		want := leastTime(nodes, need)
		k := knapsack{view: newView(len(nodes), func(node int) []option { return nodes[node] }), member: func(int) bool { return true }}
		switch i % 4 {
		case 0, 1: // neither the search nor the lists end
			k.budget, k.states = 1+rng.IntN(60), 1
		case 2: // the lists end
			k.budget = 1
		}
		low, high := k.Relax(float64(need))
		lower, upper, option := k.Solve(float64(need))
		if math.IsInf(want, 1) {
			if !math.IsInf(low, 1) || !math.IsInf(lower, 1) {
				t.Fatalf("%d: %d bytes cannot be saved, and are said to take %v", i, need, lower)
			}
			continue
		}
		const rounding = 1e-9
		if low > want+rounding || high < want-rounding || lower > want+rounding || upper < want-rounding || lower < low-rounding {
			t.Fatalf("%d: %d bytes of %d nodes: the relaxation says %v to %v, the search %v to %v; the least time is %v", i, need, len(nodes), low, high, lower, upper, want)
		}
		saved, time := 0., 0.
		for v, o := range option {
			saved, time = saved+k.Nodes[v].Memory[0]-k.Nodes[v].Memory[o], time+k.Nodes[v].Time[o]-k.Nodes[v].Time[0]
		}
		if saved < float64(need) || math.Abs(time-upper) > rounding {
			t.Fatalf("%d: the options save %v of %d bytes in %v, said %v", i, saved, need, time, upper)
		}
		switch {
		case k.ended:
			ended++
			if k.budget <= 0 {
				listed++
			}
			if math.Abs(lower-want) > rounding || math.Abs(upper-want) > rounding {
				t.Fatalf("%d: the search ended with %v to %v, the least time is %v", i, lower, upper, want)
			}
		case upper > want+rounding:
			open++ // a bound that is the answer's value would be wrong here
		}
	}
	if ended < 200 || listed < 200 || open < 10 {
		t.Errorf("%d searches ended, %d of them by lists, %d did not and missed the best", ended, listed, open)
	}
}
