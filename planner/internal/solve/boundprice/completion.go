package boundprice

import (
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// completion bounds what the items to come can add to a set, for each state: the
// most of their worth less lambda a unit of load and mu a byte, by dynamic
// programming from the end of the walk. Lambda and mu are the Lagrangian's
// multipliers of the limit and the room (Held and Karp, Mathematical
// Programming 1, 1971): at the best of them the whole walk's bound is least.
// Where more of the limit is used up than of the room, or less, others are
// better, so there are a few.
type completion struct {
	slopes []slope
	// reached are load and size of the set followed last.
	reached [2]float64
}

// slope is one lambda and mu, what is to come before each step, by state, and what a
// label must be worth, less what it has used, at the state asked for last.
type slope struct {
	lambda, mu float64
	toGo       [][]float64
	least      float64
}

// spread are the lambdas and mus, as multiples of the best: without a room, and
// with one.
var (
	spread      = [][2]float64{{1}, {0.6}, {0.8}, {0.9}, {1.1}, {1.25}, {1.6}}
	spreadSized = [][2]float64{{1, 1}, {0.8, 1}, {1.25, 1}, {1, 0.7}, {1, 1.4}, {0.6, 1.5}, {1.5, 0.6}, {0.3, 2}, {2, 0.3}, {0.85, 1.15}, {1.15, 0.85}}
)

func newCompletion(states []int, sized bool) completion {
	bound := completion{slopes: make([]slope, len(spread))}
	if sized {
		bound.slopes = make([]slope, len(spreadSized))
	}
	for i := range bound.slopes {
		bound.slopes[i].toGo = [][]float64{{0}}
		for _, count := range states {
			bound.slopes[i].toGo = append(bound.slopes[i].toGo, make([]float64, count))
		}
	}
	return bound
}

// line is a set as the Lagrangian sees it: its worth less what it pays for the
// other resource, and by how much it is over the limit.
type line struct{ value, over float64 }

// relax finds the multipliers, and with them the least bound on a set's worth,
// and the sets met that fit.
func (bound *completion) relax(walk *walker, prices []float64, limit float64) (least float64, lucky []found) {
	least = math.Inf(1)
	best := [2]float64{bound.slopes[0].lambda, bound.slopes[0].mu}
	try := func(lambda, mu float64) (worth, load, size float64) {
		bound.slopes[0].lambda, bound.slopes[0].mu = lambda, mu
		bound.sweep(walk, prices, &bound.slopes[0])
		set := walk.follow(func(step int, state int32) int32 { return bound.choice(walk, prices, step, state) }, limit, prices)
		if set.fits && set.worth > 0 {
			lucky = append(lucky, set)
		}
		if value := bound.slopes[0].toGo[0][0] + bound.slopes[0].paid(walk, limit); value < least {
			least, best = value, [2]float64{lambda, mu}
		}
		return set.worth, bound.reached[0], bound.reached[1]
	}
	const rounds = 2
	for range rounds {
		mu, before := best[1], least
		paid := (&slope{mu: mu}).paid(walk, limit)
		search(best[0], line{paid, -limit}, func(lambda float64) line {
			worth, load, size := try(lambda, mu)
			return line{worth - mu*size + paid, load - limit}
		})
		if math.IsInf(walk.room, 1) || least > before*(1-1e-6) {
			break
		}
		lambda := best[0]
		search(best[1], line{lambda * limit, -walk.room}, func(mu float64) line {
			worth, load, size := try(lambda, mu)
			return line{worth - lambda*(load-limit), size - walk.room}
		})
	}
	parts := spread
	if len(bound.slopes) > len(spread) {
		parts = spreadSized
	}
	for i, part := range parts {
		bound.slopes[i].lambda, bound.slopes[i].mu = best[0]*part[0], best[1]*part[1]
		bound.sweep(walk, prices, &bound.slopes[i])
	}
	return least * (1 + 1e-12), lucky
}

// paid is what the whole limit and the room cost.
func (slope *slope) paid(walk *walker, limit float64) float64 {
	paid := slope.lambda * limit
	if slope.mu > 0 {
		paid += slope.mu * walk.room
	}
	return paid
}

// ask works out what labels of a state must be worth to become worth need.
func (bound *completion) ask(walk *walker, step, state int, limit, need float64) {
	for i := range bound.slopes {
		slope := &bound.slopes[i]
		slope.least = need - slope.toGo[step][state] - slope.paid(walk, limit)
	}
}

// gain is worth less what load and size cost.
func (slope *slope) gain(worth, load, size float64) float64 {
	return worth - slope.lambda*load - slope.mu*size
}

// hopeless says that a label cannot become worth what was asked for.
func (bound *completion) hopeless(load, size, worth, gain float64) bool {
	if gain <= bound.slopes[0].least {
		return true
	}
	for i := range bound.slopes[1:] {
		if slope := &bound.slopes[1+i]; slope.gain(worth, load, size) <= slope.least {
			return true
		}
	}
	return false
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

// sweep fills in what is to come, from the end.
func (bound *completion) sweep(walk *walker, prices []float64, slope *slope) {
	last := len(walk.Order)
	clear(slope.toGo[last])
	for step := last - 1; step >= 0; step-- {
		item := walk.Order[step]
		gain := math.Inf(-1)
		if !math.IsInf(walk.time[item], 1) {
			gain = slope.gain(prices[item], walk.time[item], walk.size[item])
		}
		here, after := slope.toGo[step], slope.toGo[step+1]
		walk.swept += 4 * len(here)
		for state := range here {
			arcs := &walk.Arcs[step][state]
			here[state] = max(slope.along(arcs[0], after), slope.along(arcs[1], after)+gain)
		}
	}
}

// along is what is to come after an arc, less what the arc costs.
func (slope *slope) along(arc netlist.Arc, after []float64) float64 {
	if arc.To == netlist.Nowhere {
		return math.Inf(-1)
	}
	return after[arc.To] - slope.lambda*arc.In
}

// choice is what the sweep at the best multipliers preferred.
func (bound *completion) choice(walk *walker, prices []float64, step int, state int32) int32 {
	item := walk.Order[step]
	if math.IsInf(walk.time[item], 1) {
		return 0
	}
	slope := &bound.slopes[0]
	arcs, after := &walk.Arcs[step][state], slope.toGo[step+1]
	in := slope.along(arcs[1], after) + slope.gain(prices[item], walk.time[item], walk.size[item])
	if in > slope.along(arcs[0], after) {
		return 1
	}
	return 0
}
