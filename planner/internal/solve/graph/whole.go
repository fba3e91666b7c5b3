package graph

import "math"

// Step is what all loads are multiples of, where times and transfers are
// decimals of a few digits, as measured ones are written down: their greatest
// common divisor. 0 says that they are not, or are too fine to tell.
func (problem *Problem) Step() float64 {
	const digits = 9
	unit := 1.0
	for range digits + 1 {
		if divisor, whole := problem.divisor(unit); whole {
			return divisor / unit
		}
		unit *= 10
	}
	return 0
}

// divisor is the greatest common divisor of all times and transfers in units of
// which one has so many, if they are whole numbers then, of a sum that numbers
// of 53 bits tell apart.
func (problem *Problem) divisor(unit float64) (divisor float64, whole bool) {
	const most, rounds = 1 << 44, 1e-12
	sum := 0.0
	holds := func(cost float64) bool {
		scaled := cost * unit
		near := math.Round(scaled)
		divisor, sum = common(divisor, near), sum+near
		return math.Abs(scaled-near) <= rounds*scaled && sum <= most
	}
	for node := range problem.Nodes {
		for _, time := range problem.Nodes[node].Time {
			if !math.IsInf(time, 1) && !holds(time) {
				return 0, false
			}
		}
		if !holds(problem.Nodes[node].Transfer) {
			return 0, false
		}
	}
	return divisor, true
}

// common is the greatest common divisor of two whole numbers (Euclid).
func common(a, b float64) float64 {
	for b != 0 {
		a, b = b, math.Mod(a, b)
	}
	return a
}

// whole is the least load that a bound leaves: the next multiple of the step,
// but for rounding.
func (incumbent *Incumbent) whole(bound float64) float64 {
	if incumbent.Step <= 0 || math.IsInf(bound, 1) {
		return bound
	}
	const rounds = 1e-6 // of a step; loads are sums of at most 2⁴⁴ of them
	return max(bound, math.Ceil(bound/incumbent.Step-rounds)*incumbent.Step)
}
