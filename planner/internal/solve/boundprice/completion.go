package boundprice

import (
	"math"
	"slices"
)

// completion bounds what a device's items to come can add to a set, for each state. The
// Lagrangian (Held and Karp, Mathematical Programming 1, 1971), which pays lambda for a
// unit of load and mu for a byte, is quick, and weak where transfers are dear: sets of
// nothing and of everything pay none, so that a mixture of both seems to be worth a
// quarter more than any set. What it leaves is walked from the end with loads as they are
// (tails.go).
type completion struct {
	lambda, mu float64
	// toGo are what is to come before each step, by state, at lambda and mu, the best so far.
	toGo [][]float64
	// front is what has come before each step, by state and by multiple of lambda.
	front [][]float64
	// reached are load and size of the set followed last.
	reached [2]float64
}

// spread are the lambdas of the front, as multiples of the best: where more of the limit
// is used up than elsewhere, or less, others are better.
var spread = [...]float64{1, 0.6, 0.8, 0.9, 1.1, 1.25, 1.6}

func newCompletion(states []int) (bound completion) {
	before := 1
	for _, count := range append(slices.Clone(states), 0) {
		here := make([]float64, before+1)
		here[before] = math.Inf(-1) // nowhere
		bound.toGo = append(bound.toGo, here)
		before = count
	}
	return bound
}

// line is a set as the Lagrangian sees it: its worth less what it pays for the
// other resource, and by how much it is over the limit.
type line struct{ value, over float64 }

// relax finds lambda, and mu where none is known, and with them the least bound on a
// set's worth, and the sets met that fit.
func (bound *completion) relax(walk *walker, prices []float64, limit float64) (least float64, lucky []found) {
	least = math.Inf(1)
	if walk.priced {
		bound.mu = walk.nextMu
	}
	best := [2]float64{bound.lambda, bound.mu}
	try := func(lambda, mu float64) (worth, load, size float64) {
		bound.lambda, bound.mu = lambda, mu
		bound.sweep(walk, prices)
		choose := func(step int, state int32) int32 { return bound.choice(walk, prices, step, state) }
		set := walk.follow(choose, limit, prices)
		if set.fits && set.worth > 0 {
			lucky = append(lucky, set)
		}
		if value := bound.toGo[0][0] + lambda*limit + walk.ofRoom(mu); value < least {
			least, best = value, [2]float64{lambda, mu}
		}
		return set.worth, bound.reached[0], bound.reached[1]
	}
	const rounds = 2
	for range rounds {
		mu, before := best[1], least
		paid := walk.ofRoom(mu)
		search(best[0], line{paid, -limit}, func(lambda float64) line {
			worth, load, size := try(lambda, mu)
			return line{worth - mu*size + paid, load - limit}
		})
		if walk.priced || math.IsInf(walk.room, 1) || least > before*(1-1e-6) {
			break
		}
		lambda := best[0]
		search(best[1], line{lambda * limit, -walk.room}, func(mu float64) line {
			worth, load, size := try(lambda, mu)
			return line{worth - lambda*(load-limit), size - walk.room}
		})
	}
	walk.priced, walk.nextMu = true, best[1]
	if best != [2]float64{bound.lambda, bound.mu} {
		bound.lambda, bound.mu = best[0], best[1]
		bound.sweep(walk, prices)
	}
	return least * (1 + 1e-12), lucky
}

// ofRoom is what the whole room costs.
func (walk *walker) ofRoom(mu float64) float64 {
	if mu > 0 {
		return mu * walk.room
	}
	return 0
}

// search finds where the upper envelope of the lines value − x over is least: at
// the crossing of the two that are next to it, found from both sides (Handler
// and Zang, Networks 10, 1980). The empty set's line rises with x.
func search(start float64, empty line, eval func(x float64) line) {
	const steps = 12
	right, x := empty, start
	left := eval(x)
	if left.over <= 0 {
		if x == 0 {
			return
		}
		right, x = left, 0
		if left = eval(0); left.over <= 0 {
			return
		}
	}
	for range steps {
		next := (left.value - right.value) / (left.over - right.over)
		if !(next > 0) || math.Abs(next-x) <= 1e-9*next {
			return
		}
		x = next
		here := eval(x)
		if here.value-x*here.over <= left.value-x*left.over+1e-12*math.Abs(left.value) {
			return // on both lines: this is the crossing
		}
		if here.over > 0 {
			left = here
		} else {
			right = here
		}
	}
}

// gain is what taking an item in adds, less its bytes.
func (bound *completion) gain(walk *walker, prices []float64, item int32) float64 {
	return prices[item] - bound.mu*walk.size[item]
}

// sweep fills in what is to come, from the end.
func (bound *completion) sweep(walk *walker, prices []float64) {
	last := len(walk.Order)
	bound.toGo[last][0] = 0
	for step := last - 1; step >= 0; step-- {
		gain := bound.gain(walk, prices, walk.Order[step])
		turns, after := walk.turns[step], bound.toGo[step+1]
		here := bound.toGo[step][:len(turns)]
		walk.swept += 4 * len(here)
		for state := range turns {
			turn := &turns[state]
			here[state] = max(after[turn.to[0]]-bound.lambda*turn.load[0], after[turn.to[1]]-bound.lambda*turn.load[1]+gain)
		}
	}
}

// choice is what the sweep preferred.
func (bound *completion) choice(walk *walker, prices []float64, step int, state int32) int32 {
	turn, after := &walk.turns[step][state], bound.toGo[step+1]
	in := after[turn.to[1]] - bound.lambda*turn.load[1] + bound.gain(walk, prices, walk.Order[step])
	if in > after[turn.to[0]]-bound.lambda*turn.load[0] {
		return 1
	}
	return 0
}

// advance fills in what has come, from the front, at all lambdas of the spread.
func (bound *completion) advance(walk *walker, prices []float64) {
	const many = len(spread)
	var lambda [many]float64
	for i, part := range spread {
		lambda[i] = part * bound.lambda
	}
	for step := len(bound.front); step < len(bound.toGo); step++ { // walks without tails need none
		bound.front = append(bound.front, make([]float64, many*len(bound.toGo[step])))
	}
	clear(bound.front[0][:many])
	for step, item := range walk.Order {
		gains := [2]float64{0, bound.gain(walk, prices, item)}
		turns, here, next := walk.turns[step], bound.front[step], bound.front[step+1]
		walk.swept += 2 * many * len(turns)
		for i := range next {
			next[i] = math.Inf(-1)
		}
		for state := range turns {
			turn, from := &turns[state], (*[many]float64)(here[state*many:])
			for choice, gain := range gains {
				load, into := turn.load[choice], (*[many]float64)(next[int(turn.to[choice])*many:])
				for i := range into {
					into[i] = max(into[i], from[i]+gain-lambda[i]*load)
				}
			}
		}
	}
}
