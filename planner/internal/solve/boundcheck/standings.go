package boundcheck

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// permutation holds the order to have every group that it must have, and none
// twice.
func (all *sums) permutation(order []int) error {
	seen := make(map[int]bool)
	for _, name := range order {
		if all.groups[name] == nil || seen[name] {
			return fmt.Errorf("group %d is not one of the groups, or twice in the order", name)
		}
		seen[name] = true
	}
	for name := range all.must {
		if !seen[name] {
			return fmt.Errorf("an order of %d groups without group %d", len(seen), name)
		}
	}
	return nil
}

// lay numbers the standings after each step. An open output stands for the
// groups so far: o, all out; i, all in; m, some of each, which is paid.
func (all *sums) lay(ctx context.Context, order []int) error {
	all.of, all.last = make(map[int][]int), make([]int, len(all.outputs))
	for output := range all.outputs {
		for _, name := range all.outputs[output].groups {
			all.of[name] = append(all.of[name], output)
		}
	}
	within := make([]int, len(all.outputs))
	for step, name := range order {
		for _, output := range all.of[name] {
			all.last[output] = step
			within[output]++
		}
	}
	all.apart = make([]bool, len(all.outputs))
	for output, many := range within {
		all.apart[output] = many < len(all.outputs[output].groups)
	}
	standings, moves := []map[int]byte{{}}, 0
	best := []reach{{}}
	rest := all.rest(order)
	for step, name := range order {
		numbers := make(map[string]int)
		var next []map[int]byte
		var bestNext []reach
		var from [][2]move
		for at, standing := range standings {
			var both [2]move
			for in := range both {
				after, cost := all.stand(standing, name, step, in == 1)
				both[in] = all.moved(name, cost, in == 1)
				reached := best[at].along(both[in], all.said.PerLoad)
				if both[in].never = both[in].never || all.beyond(reached, rest[step+1]); both[in].never {
					continue
				}
				key := fmt.Sprint(after)
				to, known := numbers[key]
				if !known {
					to = len(next)
					numbers[key] = to
					next, bestNext = append(next, after), append(bestNext, reached)
				}
				bestNext[to] = bestNext[to].or(reached)
				both[in].to = to
			}
			from = append(from, both)
		}
		if moves += len(from); moves > mostMoves || ctx.Err() != nil {
			return errors.Join(errTooLong, ctx.Err())
		}
		all.moves = append(all.moves, from)
		standings, best = next, bestNext
	}
	return nil
}

// moved is what leaving a group out or taking it in comes to.
func (all *sums) moved(name int, cost float64, in bool) move {
	if !in {
		return move{load: cost}
	}
	own := all.groups[name]
	return move{load: cost + own.time[all.kind], size: own.size, worth: all.proof.Price[name], never: math.IsInf(own.time[all.kind], 1)}
}

// stand is how the outputs stand after a group, and what is paid for that.
func (all *sums) stand(before map[int]byte, name, step int, in bool) (after map[int]byte, cost float64) {
	after = make(map[int]byte, len(before)+len(all.of[name]))
	for output, stands := range before {
		after[output] = stands
	}
	side := byte('o')
	if in {
		side = 'i'
	}
	for _, output := range all.of[name] {
		stands, open := after[output]
		if !open && all.apart[output] {
			stands, open = 'o', true
			after[output] = stands
		}
		switch {
		case !open:
			after[output] = side
		case stands != 'm' && stands != side:
			after[output] = 'm'
			cost += all.outputs[output].cost
		default:
		}
		if all.last[output] == step {
			delete(after, output)
		}
	}
	return after, cost
}
