package boundprice

import (
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundcheck"
)

// proof says that no set is worth half of all at an attempt's prices.
func (halves *Halves) proof(try attempt, limit float64) *boundcheck.Proof {
	prices := halves.prices(try)
	halves.walkers[0] = try.walker
	proof := halves.Bound.proof(limit, prices, []float64{halves.rent(prices)})
	proof.Kinds[halves.kind].Sums = fewSums
	return proof
}

// fewSums is enough for most checks: the walks have no more labels of a state, mostly.
const fewSums = 2000

// proof writes down what walks have just found, in terms of the problem as it
// was posed.
func (bound *Bound) proof(limit float64, prices, rents []float64) *boundcheck.Proof {
	group := func(item int32) int { return bound.Problem.Nodes[bound.Nodes[item][0]].Group }
	proof := &boundcheck.Proof{Limit: limit, Price: make(map[int]float64), Kinds: make([]boundcheck.Kind, len(bound.Count)), Stages: bound.staged}
	if bound.staged {
		proof.Kinds = make([]boundcheck.Kind, len(bound.walkers))
	}
	for item, price := range prices {
		proof.Price[group(int32(item))] = price
	}
	for at, rent := range rents {
		walk, number := bound.walkers[at], bound.kinds[at]
		if bound.staged {
			number = at
		}
		said := &proof.Kinds[number]
		said.Rent, said.PerLoad, said.PerByte, said.Unsized = rent, walk.lambda, walk.mu, math.IsInf(walk.room, 1)
		for _, item := range walk.Order {
			said.Order = append(said.Order, group(item))
		}
		groups := func(items []int32) (all []int) {
			for _, item := range items {
				all = append(all, group(item))
			}
			return all
		}
		for _, wire := range walk.Left {
			said.Left = append(said.Left, groups(bound.Wires[wire].Members))
		}
		for wire, members := range walk.Short {
			said.Short = append(said.Short, boundcheck.Short{Groups: groups(bound.Wires[wire].Members), Kept: groups(members)})
		}
	}
	return proof
}
