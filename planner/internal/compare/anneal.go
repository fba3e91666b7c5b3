package main

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/dags"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// annealed is the best of two annealers, a processor each: from random places,
// and from the start that is given.
func annealed(problem *graph.Problem, line *dags.Line, start []int, limit time.Duration) []int {
	found, largest := make([][]int, 2), []float64{math.Inf(1), math.Inf(1)}
	var running sync.WaitGroup
	for i, from := range [][]int{nil, start} {
		if i == 1 && from == nil {
			continue
		}
		running.Go(func() {
			state := newAnneal(problem, line.Mode == "contiguous", rand.New(rand.NewPCG(line.Seed, uint64(i))), from)
			state.run(time.Now().Add(limit), i == 1)
			found[i], largest[i] = state.best, state.least
		})
	}
	running.Wait()
	return found[slices.Index(largest, slices.Min(largest))]
}

// anneal is simulated annealing over the nodes' devices, which are stage
// numbers where places are contiguous: a node's lies between those of what it
// reads and those of what reads it.
type anneal struct {
	problem       *graph.Problem
	contiguous    bool
	random        *rand.Rand
	reads, readBy [][]int
	at            []int
	// readers[node][device] of its readers are there.
	readers    [][]int
	load, held []float64
	capacity   float64
	best       []int
	least      float64
}

func newAnneal(problem *graph.Problem, contiguous bool, random *rand.Rand, start []int) *anneal {
	count, devices := len(problem.Nodes), problem.Devices()
	state := &anneal{
		problem: problem, contiguous: contiguous, random: random, reads: make([][]int, count), readBy: make([][]int, count),
		readers: make([][]int, count), load: make([]float64, devices), held: make([]float64, devices),
		capacity: problem.Kinds[0].Capacity, least: math.Inf(1),
	}
	for _, edge := range problem.Edges {
		state.readBy[edge[0]] = append(state.readBy[edge[0]], edge[1])
		state.reads[edge[1]] = append(state.reads[edge[1]], edge[0])
	}
	state.at = state.first(start)
	for node := range problem.Nodes {
		state.readers[node] = make([]int, devices)
		for _, reader := range state.readBy[node] {
			state.readers[node][state.at[reader]]++
		}
	}
	for node, own := range problem.Nodes {
		state.load[state.at[node]] += own.Time[0]
		state.held[state.at[node]] += own.Size
		state.pay(node, 1)
	}
	return state
}

// first are the places to begin with. Those that are given and contiguous are
// stage numbers once the devices stand in an order; random ones are cuts of
// the nodes' order, which is a linear extension, or any.
func (state *anneal) first(start []int) []int {
	count, devices := len(state.problem.Nodes), len(state.load)
	place := make([]int, count)
	for node := range place {
		switch {
		case start != nil:
			place[node] = start[node]
		case state.contiguous:
			place[node] = node * devices / count
		default:
			place[node] = state.random.IntN(devices)
		}
	}
	if start != nil && state.contiguous {
		rank := state.ranks(place)
		for node := range place {
			place[node] = rank[place[node]]
		}
	}
	return place
}

// ranks numbers devices so that every edge goes up: by the longest way to each.
func (state *anneal) ranks(place []int) []int {
	depth := make([]int, len(state.load))
	for range depth {
		for _, edge := range state.problem.Edges {
			if from, to := place[edge[0]], place[edge[1]]; from != to {
				depth[to] = max(depth[to], depth[from]+1)
			}
		}
	}
	order, rank := make([]int, len(depth)), make([]int, len(depth))
	for device := range order {
		order[device] = device
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(depth[a], depth[b]) })
	for i, device := range order {
		rank[device] = i
	}
	return rank
}

// pay adds the transfers of a node's output to the loads, or takes them off.
func (state *anneal) pay(node int, sign float64) {
	cost, crosses := sign*state.problem.Nodes[node].Transfer, false
	for device, count := range state.readers[node] {
		if count > 0 && device != state.at[node] {
			state.load[device] += cost
			crosses = true
		}
	}
	if crosses {
		state.load[state.at[node]] += cost
	}
}
