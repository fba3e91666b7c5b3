package boundwindow

import (
	"context"
	"math"
)

// patience is how many steps may pass without a better bound before the aim is
// lowered, to leastLead in the end; keepWay is the part of the steps before
// that goes into a step.
const (
	patience  = 12
	leastLead = 1e-5
	keepWay   = 0.5
)

// improve takes steps along the subgradient, of Polyak's length towards an aim a
// little above the bound ("Minimization of unsmooth functionals", USSR
// Computational Mathematics and Mathematical Physics 9, 1969).
func (dual *dual) improve(ctx context.Context, steps int) {
	stale := 0
	for range steps {
		if ctx.Err() != nil {
			break
		}
		value := dual.evaluate(ctx)
		stale++
		if value > dual.bound {
			if value > dual.bound*(1+0.05*dual.lead) {
				stale = 0
			}
			dual.bound = value
			dual.best.take(&dual.multipliers)
		}
		if dual.bound >= dual.limit {
			break
		}
		if stale > patience {
			if stale, dual.lead = 0, dual.lead/2; dual.lead < leastLead {
				break
			}
			dual.take(&dual.best)
			value = dual.evaluate(ctx)
			dual.way.take(&dual.slope)
		}
		dual.step(math.Min(dual.limit, dual.bound*(1+dual.lead)) - value)
	}
	dual.lead = max(dual.lead, 10*leastLead)
	dual.take(&dual.best)
}

// step goes so far that the bound would gain that much if it were linear. The
// rents are scaled so that the room costs what the limit does. Shares grow where
// their wire crosses.
func (dual *dual) step(gain float64) {
	scale := 0.0
	if dual.room > 0 {
		scale = dual.limit / dual.room
	}
	norm, mean := 0.0, 0.0
	for stage, slope := range dual.slope.weight {
		dual.way.weight[stage] = keepWay*dual.way.weight[stage] + (1-keepWay)*slope
		mean += dual.way.weight[stage] / float64(dual.stages)
		dual.way.rent[stage] = keepWay*dual.way.rent[stage] + (1-keepWay)*dual.slope.rent[stage]
	}
	for stage, way := range dual.way.weight {
		norm += (way - mean) * (way - mean)
		if way := dual.way.rent[stage] * scale; way > 0 || dual.rent[stage] > 0 {
			norm += way * way
		}
	}
	if norm > tiny*dual.limit*dual.limit && gain > 0 {
		length, sum := gain*float64(dual.stages)/norm, 0.0
		for stage, way := range dual.way.weight {
			dual.weight[stage] = math.Max(0, dual.weight[stage]+length*(way-mean))
			rent := dual.rent[stage] + length*dual.way.rent[stage]*scale*scale
			dual.rent[stage] = math.Min(math.Max(0, rent), dearest*scale)
			sum += dual.weight[stage]
		}
		for stage := range dual.weight {
			dual.weight[stage] *= float64(dual.stages) / sum
		}
	}
	for wire, share := range dual.share {
		if len(share) > 1 {
			grown(share, dual.slope.share[wire], min(0.7, dual.lead*growth))
		}
	}
}

// A direction whose square is tiny times that of the limit is rounding. A room
// costs dearest times the limit at most, so that costs stay whole numbers.
const (
	tiny    = 1e-16
	dearest = 1000
)

// growth is by how much a share grows, for a lead of 1.
const growth = 20

// grown lets some of a wire's shares grow; they sum to 1 again.
func grown(share, crosses []float64, by float64) {
	sum := 0.0
	for i, crossed := range crosses {
		if crossed > 0 {
			share[i] = math.Max(share[i], 1e-4) * (1 + by)
		}
		sum += share[i]
	}
	for i := range share {
		share[i] /= sum
	}
}
