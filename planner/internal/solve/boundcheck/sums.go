package boundcheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// sums goes through the groups in the order from its end, and keeps for each way
// that the open outputs can stand what the sets so far come to.
type sums struct {
	groups  map[int]*group
	proof   *Proof
	said    *Kind
	kind    int
	room    float64
	outputs []output
	// must are the groups that the order has to have: a set may have no others.
	must map[int]bool
	// of are the outputs of each group, last the step at which an output's last
	// group comes.
	of   map[int][]int
	last []int
	// apart says of an output that it has a group which is not in the order: that
	// one is on another device.
	apart []bool
	// moves are, for each step and standing, where leaving the group out and
	// taking it leads, and what that costs.
	moves [][][2]move
	// most is how many sums of one standing there may be: then they are paired.
	most, work int
}

type move struct {
	to                int
	worth, load, size float64
	never             bool
}

// sum is what one or more sets come to, at most in worth and at least in load
// and bytes. Each pairing makes those better than any set's; the most that one of the
// sets is worth less what its load and bytes cost is a set's own, however often.
type sum struct{ load, size, worth, gain float64 }

const (
	mostMoves = 2_000_000
	mostWork  = 400_000_000
)

// mostSums are how many sums of one standing there may be at most.
var mostSums = 30_000

// check says that no set is worth more than the rent.
func (all *sums) check(ctx context.Context) error {
	if !(all.said.Rent >= 0) {
		return fmt.Errorf("a rent of %v", all.said.Rent)
	}
	order := slices.Clone(all.said.Order)
	slices.Reverse(order)
	if err := all.permutation(order); err != nil {
		return err
	}
	if len(all.outputs) == 0 {
		all.longestFirst(order)
	}
	if err := all.lay(ctx, order); err != nil {
		return err
	}
	costs := all.costs()
	if few := all.said.Sums; 0 < few && few < mostSums {
		all.most = few
		if err := all.within(ctx, costs); err == nil || errors.Is(err, errTooLong) {
			return err
		}
	}
	all.most = mostSums
	return all.within(ctx, costs)
}

// within says that no set is worth more than the rent, with so many sums as there may be.
func (all *sums) within(ctx context.Context, costs []cost) error {
	const rounding = 1e-9
	here := [][]sum{{{}}}
	all.work = 0
	for step := range all.moves {
		next := make([][]sum, len(costs[0].toCome[step+1]))
		for standing, some := range here {
			for _, move := range all.moves[step][standing] {
				if move.never {
					continue
				}
				next[move.to] = all.along(move, some, next[move.to], costs, step+1)
			}
		}
		for standing := range next {
			next[standing] = all.thin(next[standing])
		}
		if here = next; ctx.Err() != nil || all.work > mostWork {
			return errors.Join(errTooLong, ctx.Err())
		}
	}
	for _, one := range slices.Concat(here...) {
		if one.worth > all.said.Rent*(1+rounding) {
			return fmt.Errorf("a set may be worth %v, more than the rent of %v", one.worth, all.said.Rent)
		}
	}
	return nil
}

// longestFirst is the order where there are no outputs: what is to come is the
// nearer to its bound the finer it is.
func (all *sums) longestFirst(order []int) {
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(all.groups[b].time[all.kind], all.groups[a].time[all.kind]), cmp.Compare(a, b))
	})
}

// along adds what some sums become by a move, but for those that are over a limit
// or can no longer be worth more than the rent.
func (all *sums) along(move move, some, into []sum, costs []cost, step int) []sum {
	all.work += len(some)
	gain := costs[0].gain(move.load, move.size, move.worth)
	for _, one := range some {
		one.gain += gain
		one.load += move.load
		one.size += move.size
		one.worth += move.worth
		if one.load <= all.proof.Limit && one.size <= all.room && all.may(one, costs, step, move.to) {
			into = append(into, one)
		}
	}
	return into
}

// cost is what load and bytes cost in a bound on what is to come, and that bound:
// the most that the groups to come can add, less what their load and bytes cost,
// for each step and standing.
type cost struct {
	perLoad, perByte float64
	toCome           [][]float64
}

// gain is worth less what load and bytes cost.
func (per *cost) gain(load, size, worth float64) float64 {
	return worth - per.perLoad*load - per.perByte*size
}

// costs are the proof's, and others near: where sums have used up more or less of
// load and room than most, these tell sooner that they cannot become dear.
func (all *sums) costs() (costs []cost) {
	multiples := [][2]float64{{1, 1}, {0.5, 1}, {0.7, 1}, {0.85, 1}, {1.15, 1}, {1.4, 1}, {2, 1}}
	if all.said.PerByte > 0 && !math.IsInf(all.room, 1) {
		multiples = append(multiples, [][2]float64{{1, 0.7}, {1, 1.4}, {0.6, 1.5}, {1.5, 0.6}, {0.3, 2}, {2, 0.3}}...)
	}
	for _, by := range multiples {
		one := cost{perLoad: by[0] * max(0, all.said.PerLoad), perByte: by[1] * all.said.PerByte}
		one.toCome = all.toCome(one)
		costs = append(costs, one)
	}
	return costs
}

func (all *sums) toCome(per cost) [][]float64 {
	steps := len(all.moves)
	most := make([][]float64, steps+1)
	most[steps] = []float64{0}
	for step := steps - 1; step >= 0; step-- {
		most[step] = make([]float64, len(all.moves[step]))
		for standing, both := range all.moves[step] {
			best := math.Inf(-1)
			for _, move := range both {
				if !move.never {
					best = max(best, most[step+1][move.to]+per.gain(move.load, move.size, move.worth))
				}
			}
			most[step][standing] = best
		}
	}
	return most
}

// may says that a sum may yet be worth more than the rent.
func (all *sums) may(one sum, costs []cost, step, standing int) bool {
	for i := range costs {
		per := &costs[i]
		gain := one.gain
		if i > 0 {
			gain = per.gain(one.load, one.size, one.worth)
		}
		if per.perByte > 0 {
			gain += per.perByte * all.room
		}
		if gain+per.toCome[step][standing]+per.perLoad*all.proof.Limit <= all.said.Rent {
			return false
		}
	}
	return true
}

// thin drops sums that another is no worse than in anything; many are paired.
func (all *sums) thin(some []sum) []sum {
	slices.SortFunc(some, func(a, b sum) int {
		return cmp.Or(cmp.Compare(a.load, b.load), cmp.Compare(a.size, b.size), cmp.Compare(b.worth, a.worth))
	})
	var kept []sum
	var front []int // of those kept: the least bytes for each worth so far
	for _, one := range some {
		if math.IsInf(all.room, 1) {
			one.size = 0
		}
		at, _ := slices.BinarySearchFunc(front, one.size, func(other int, size float64) int {
			if kept[other].size <= size {
				return -1
			}
			return 1
		})
		if at > 0 && kept[front[at-1]].worth >= one.worth {
			better := &kept[front[at-1]]
			better.gain = max(better.gain, one.gain) // it stands for both
			continue
		}
		end := at
		for end < len(front) && kept[front[end]].worth <= one.worth {
			end++
		}
		front = slices.Replace(front, at, end, len(kept))
		kept = append(kept, one)
	}
	for len(kept) > all.most {
		for i := range len(kept) / 2 {
			a, b := kept[2*i], kept[2*i+1]
			kept[i] = sum{min(a.load, b.load), min(a.size, b.size), max(a.worth, b.worth), max(a.gain, b.gain)}
		}
		if len(kept)%2 == 1 {
			kept[len(kept)/2] = kept[len(kept)-1]
		}
		kept = kept[:(len(kept)+1)/2]
	}
	return kept
}
