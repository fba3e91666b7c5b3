package boundcheck

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
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
	standings, moves := []string{""}, 0
	best, rest := []reach{{}}, all.rest(order)
	var open []int // outputs: of each a standing has a byte
	for step, name := range order {
		turn := all.turn(open, name, step)
		numbers := make(map[string]int)
		var next []string
		var bestNext []reach
		from := make([][2]move, 0, len(standings))
		for at, standing := range standings {
			var both [2]move
			for in := range both {
				after, cost := turn.stand(standing, in == 1)
				both[in] = all.moved(name, cost, in == 1)
				reached := best[at].along(both[in], all.said.PerLoad)
				if both[in].never = both[in].never || all.beyond(reached, rest[step+1]); both[in].never {
					continue
				}
				to, known := numbers[string(after)]
				if !known {
					to = len(next)
					next, bestNext = append(next, string(after)), append(bestNext, reached)
					numbers[next[to]] = to
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
		standings, best, open = next, bestNext, turn.left()
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

// turn is a group's: what it does to the outputs that are open before it or opened by
// it.
type turn struct {
	open []int
	// begun is how those that it opens stand at first, cost what each costs.
	begun []byte
	cost  []float64
	// own are the places of the group's outputs; ends says which close behind it.
	own   []int
	ends  []bool
	after []byte
}

func (all *sums) turn(open []int, name, step int) *turn {
	turn := &turn{open: slices.Clone(open)}
	for _, output := range all.of[name] {
		at := slices.Index(open, output)
		if at < 0 {
			at = len(turn.open)
			turn.open = append(turn.open, output)
			begun := byte('?') // no group yet
			if all.apart[output] {
				begun = 'o'
			}
			turn.begun = append(turn.begun, begun)
		}
		turn.own = append(turn.own, at)
	}
	for _, output := range turn.open {
		turn.cost = append(turn.cost, all.outputs[output].cost)
		turn.ends = append(turn.ends, all.last[output] == step)
	}
	return turn
}

// left are the outputs that are open after the group.
func (turn *turn) left() (open []int) {
	for at, output := range turn.open {
		if !turn.ends[at] {
			open = append(open, output)
		}
	}
	return open
}

// stand is how the outputs stand after the group, and what is paid for that. It is
// good until the next call.
func (turn *turn) stand(before string, in bool) (after []byte, cost float64) {
	side := byte('o')
	if in {
		side = 'i'
	}
	after = append(append(turn.after[:0], before...), turn.begun...)
	for _, at := range turn.own {
		switch stands := after[at]; stands {
		case '?':
			after[at] = side
		case 'm', side:
		default:
			after[at] = 'm'
			cost += turn.cost[at]
		}
	}
	kept := 0
	for at, ends := range turn.ends {
		if !ends {
			after[kept] = after[at]
			kept++
		}
	}
	turn.after = after
	return after[:kept], cost
}
