package partition

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// hostileProblem has what solvers are easily wrong about: sizes that fill a
// capacity on paper and not in floating point, times of all magnitudes, kinds
// without devices, nodes that run nowhere, all times 0.
func hostileProblem(r *rand.Rand) *Problem {
	p := &Problem{}
	n := 1 + r.IntN(6)
	scale := []float64{1, 1, 1, 1e-12, 1e15, 5e-320}[r.IntN(6)]
	unit := []float64{1, 0.1, 0.3, 1e9}[r.IntN(4)]
	for k, left := 0, 4; k < 3; k++ {
		count := r.IntN(min(left, 3) + 1)
		left -= count
		p.Kinds = append(p.Kinds, Kind{Name: fmt.Sprint("k", k), Count: count, Capacity: math.Inf(1), FreeTransfers: r.IntN(3) == 0})
		if r.IntN(2) == 0 {
			p.Kinds[k].Capacity = float64(1+r.IntN(9)) * unit
		}
	}
	if p.Devices() == 0 {
		p.Kinds[r.IntN(3)].Count = 1 + r.IntN(3)
	}
	forward, idle := 1+r.IntN(n), r.IntN(3) == 0
	for v := range n {
		node := Node{Name: fmt.Sprint("n", v), Backward: v >= forward, Group: 100 + v}
		if r.IntN(2) == 0 {
			node.Group = r.IntN(n + 1)
		}
		light := idle || r.IntN(3) == 0
		for range p.Kinds {
			time := float64(r.IntN(8)) * []float64{1, 0.1, r.Float64(), 1e4}[r.IntN(4)]
			if light {
				time = 0
			}
			if r.IntN(12) == 0 {
				time = math.Inf(1)
			}
			node.Time = append(node.Time, time*scale)
		}
		node.Size = float64(r.IntN(4)) * unit
		node.Transfer = float64(r.IntN(5)) * []float64{0.5, r.Float64()}[r.IntN(2)] * scale
		p.Nodes = append(p.Nodes, node)
	}
	perm, dense := r.Perm(n), r.IntN(4)
	for i := range n {
		for j := range i {
			a, b := perm[j], perm[i]
			if r.IntN(4) < dense && (!p.Nodes[a].Backward || p.Nodes[b].Backward) {
				p.Edges = append(p.Edges, [2]int{a, b})
			}
		}
	}
	return p
}

// judge holds an answer, and what it says of itself, to the truth.
func judge(t *testing.T, seed uint64, p *Problem, s *Solution, err error, least float64, proof bool) {
	t.Helper()
	if err != nil {
		var none *InfeasibleError
		if !errors.As(err, &none) && !errors.Is(err, errFull) || proof && !math.IsInf(least, 1) {
			t.Errorf("seed %d: %v; %v is possible", seed, err, least)
		}
		return
	}
	_, largest, broken := p.Score(s.Place)
	if broken != nil || largest != s.Largest || largest < least*(1-1e-9) {
		t.Errorf("seed %d: %v, scored %v, %v; the least is %v", seed, s.Largest, largest, broken, least)
	}
	if s.LowerBound > least*(1+1e-9) || s.LowerBound > largest || s.Optimal && largest > least*(1+1e-8) || proof && !s.Optimal {
		t.Errorf("seed %d: %v, bound %v (%s), optimal %v; the least is %v", seed, largest, s.LowerBound, s.Bound, s.Optimal, least)
	}
}

func TestHostileProblems(t *testing.T) {
	ctx := context.Background()
	possible := 0
	for seed := range uint64(500) {
		p := hostileProblem(rand.New(rand.NewPCG(seed, 17)))
		least := leastOf(p)
		s, err := Any(ctx, p, Settings{})
		judge(t, seed, p, s, err, least, true)
		if !math.IsInf(least, 1) {
			possible++
			l := newNetlist(newInstance(p, p.groups()))
			unit, _ := l.unitBound(ctx)
			sets := l.newSetBound(ctx, 20_000)
			sets.improve(ctx, least*1.3, 10)
			if max(unit, sets.bound) > least*(1+1e-9) {
				t.Errorf("seed %d: bounds of %v by unit and %v by sets; %v is possible", seed, unit, sets.bound, least)
			}
		}
		least = bruteForce(p)
		s, err = Contiguous(ctx, p, Settings{})
		judge(t, seed, p, s, err, least, true)
		if s, err = contiguousWithin(ctx, p, Settings{}, limits{few: 2, some: 4, most: 8, states: 40}); err == nil {
			judge(t, seed, p, s, err, least, false) // few down-sets, leaves joined
		}
	}
	if possible < 250 || possible > 475 {
		t.Errorf("%d of 500 problems have an answer", possible)
	}
}
