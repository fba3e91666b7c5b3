// Package boundcheck checks proofs that no assignment has a largest load within
// a limit. A proof is prices and rents: if no set of groups that a device of a
// kind can take within the limit and its capacity is worth more than the kind's
// rent, and all groups together are worth more than all devices' rents, no
// assignment has that load. What package boundprice found is worked out here
// anew, from the problem as it was posed, by code that shares nothing with it.
package boundcheck

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// Proof says that no assignment has a largest load of Limit or less.
type Proof struct {
	Limit float64
	// Price is each group's, Rent is each kind's.
	Price map[int]float64
	Kinds []Kind
	// Stages: Kinds are the stages of a row instead, and no contiguous placement
	// has that load: see CheckStages.
	Stages bool
}

// Kind is what is said of a kind's devices. All but Rent are hints, which are
// quick or slow and never wrong.
type Kind struct {
	Rent float64
	// Order is one of the groups that keeps few outputs open.
	Order []int
	// Left are outputs that are left out, by the groups that write and read them.
	Left [][]int
	// Short are outputs of which some groups count alone.
	Short []Short
	// PerLoad and PerByte are what load and bytes cost in the bound on what is to
	// come.
	PerLoad, PerByte float64
	// Sums are as many of those that stand alike as may be enough; 0: not known.
	Sums int
	// Unsized: sets are not asked to keep the capacity, which there is no need of.
	Unsized bool
}

// Short is an output by the groups that write and read it, and those of them that
// count: a device that has some of these and not all does not have all.
type Short struct{ Groups, Kept []int }

// errTooLong says that a check was given up: nothing is known.
var errTooLong = errors.New("the check takes too many steps")

// Check returns an error where the proof does not hold, or where the context
// ends or too much work is needed to tell.
func Check(ctx context.Context, problem *graph.Problem, proof *Proof) error {
	groups := grouped(problem)
	if proof.Stages || len(proof.Kinds) != len(problem.Kinds) {
		return fmt.Errorf("%d rents of %d kinds, stages: %v", len(proof.Kinds), len(problem.Kinds), proof.Stages)
	}
	rents := 0.0
	for kind, said := range proof.Kinds {
		rents += float64(problem.Kinds[kind].Count) * said.Rent
	}
	if err := proof.worthMore(groups, rents); err != nil {
		return err
	}
	for kind, said := range proof.Kinds {
		if problem.Kinds[kind].Count == 0 {
			continue
		}
		sum := newSums(problem, groups, proof, kind, &said)
		for name := range groups {
			sum.must[name] = true
		}
		if err := sum.check(ctx); err != nil {
			return fmt.Errorf("kind %d: %w", kind, err)
		}
	}
	return nil
}

// worthMore holds all groups together to be worth more than the rents.
func (proof *Proof) worthMore(groups map[int]*group, rents float64) error {
	if len(groups) != len(proof.Price) {
		return fmt.Errorf("%d prices of %d groups", len(proof.Price), len(groups))
	}
	worth := 0.0
	for name := range groups {
		price, known := proof.Price[name]
		if !known || math.IsNaN(price) || math.IsInf(price, 0) {
			return fmt.Errorf("group %d has a price of %v", name, price)
		}
		worth += price
	}
	const margin = 1e-8
	if !(worth > rents*(1+margin)) {
		return fmt.Errorf("all groups are worth %v, the devices' rents are %v", worth, rents)
	}
	return nil
}

// newSums prepares the sums of what one device of a kind can take.
func newSums(problem *graph.Problem, groups map[int]*group, proof *Proof, kind int, said *Kind) *sums {
	sum := &sums{groups: groups, proof: proof, said: said, kind: kind, room: problem.Kinds[kind].Capacity * (1 + 1e-12), must: make(map[int]bool)}
	size := 0.0
	for _, own := range groups {
		size += own.size
	}
	if size <= sum.room || said.Unsized {
		sum.room = math.Inf(1)
	}
	if !problem.Kinds[kind].FreeTransfers {
		sum.outputs = outputs(problem, said)
	}
	return sum
}

// group is the nodes that share a device.
type group struct {
	time []float64
	size float64
}

func grouped(problem *graph.Problem) map[int]*group {
	groups := make(map[int]*group)
	for node := range problem.Nodes {
		own := &problem.Nodes[node]
		if groups[own.Group] == nil {
			groups[own.Group] = &group{time: make([]float64, len(problem.Kinds))}
		}
		for kind, time := range own.Time {
			groups[own.Group].time[kind] += time
		}
		groups[own.Group].size += own.Size
	}
	return groups
}

// output is what some nodes send to the same readers: a device that has some of
// these groups and not all pays once for each node.
type output struct {
	groups []int
	cost   float64
}

// outputs are those that more than one group has to do with, but for those left
// out, and of the shortened ones what counts.
func outputs(problem *graph.Problem, said *Kind) []output {
	members := make([][]int, len(problem.Nodes))
	for _, edge := range problem.Edges {
		members[edge[0]] = append(members[edge[0]], problem.Nodes[edge[1]].Group)
	}
	known, kept := make(map[string]int), make(map[string][]int)
	for _, groups := range said.Left {
		known[nameOf(groups)] = -1
	}
	for _, short := range said.Short {
		kept[nameOf(short.Groups)] = short.within()
	}
	var all []output
	for node, groups := range members {
		groups = append(groups, problem.Nodes[node].Group)
		slices.Sort(groups)
		if groups = slices.Compact(groups); len(groups) == 1 || problem.Nodes[node].Transfer == 0 {
			continue
		}
		key := nameOf(groups)
		at, seen := known[key]
		if !seen {
			at = len(all)
			known[key] = at
			if short, is := kept[key]; is {
				groups = short
			}
			all = append(all, output{groups: groups})
		}
		if at >= 0 {
			all[at].cost += problem.Nodes[node].Transfer
		}
	}
	return all
}

// nameOf tells sets of groups apart.
func nameOf(groups []int) string {
	slices.Sort(groups)
	return fmt.Sprint(groups)
}

// within are the groups that count, of those that there are.
func (short *Short) within() []int {
	kept := slices.DeleteFunc(slices.Clone(short.Kept), func(group int) bool { return !slices.Contains(short.Groups, group) })
	slices.Sort(kept)
	return slices.Compact(kept)
}
