package assigntime

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/assignment"
	"github.com/devmap-dev/devmap/planner/internal/chaintime"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// score orders maps: crossings without a link, the step, the largest share and the bytes sent.
type score struct {
	missing     int
	step, share float64
	sent        int64
}

func (rating *score) better(than *score) bool {
	switch {
	case rating.missing != than.missing:
		return rating.missing < than.missing
	case !chaintime.Same(rating.step, than.step):
		return rating.step < than.step
	case math.Abs(rating.share-than.share) > instance.Tolerance:
		return rating.share < than.share
	}
	return rating.sent < than.sent
}

// localSearch is a local search over maps that fit, of any form.
type localSearch struct {
	*evaluator
	ctx       context.Context
	rng       *rand.Rand
	at, next  devicemap.Map
	score     score
	best      devicemap.Map
	bestScore score
	bounds    []instance.BoundValue
	memory    *headroom // computed on first use
	tried     int
	left      int // number of maps that it may still score
}

// These limits bound the maps scored and the disturbances of a local optimum.
const (
	maxScored = 1_000_000
	maxKicks  = 100
)

func newSearch(ctx context.Context, problem *assignment.Problem, from devicemap.Map) *localSearch {
	search := &localSearch{evaluator: newEvaluator(problem), ctx: ctx, rng: rand.New(rand.NewPCG(1, 2)), left: maxScored}
	search.at, search.next = slices.Clone(from), slices.Clone(from)
	search.score = search.scoreOf(search.at)
	search.best, search.bestScore = slices.Clone(from), search.score
	return search
}

func (search *localSearch) scoreOf(placement devicemap.Map) (rating score) {
	rating.step, rating.missing = search.seconds(placement)
	rating.share, _ = search.share(placement)
	rating.sent = search.sender.Sent(placement)
	return rating
}

func (search *localSearch) stopped() bool { return search.left <= 0 || search.ctx.Err() != nil }

// closed reports that no map has a shorter step than the best.
func (search *localSearch) closed() bool {
	return search.bestScore.missing == 0 && slices.ContainsFunc(search.bounds, func(bound instance.BoundValue) bool {
		return search.bestScore.step*(1-instance.Tolerance) <= bound.Value
	})
}

func (search *localSearch) keep() {
	if search.score.better(&search.bestScore) {
		copy(search.best, search.at)
		search.bestScore = search.score
	}
}

// try applies a change to the current map if the result fits and is better.
func (search *localSearch) try(change func(devicemap.Map)) bool {
	copy(search.next, search.at)
	change(search.next)
	search.tried++
	search.left--
	rating := score{sent: math.MaxInt64}
	if rating.step, rating.missing = search.seconds(search.next); rating.missing > search.score.missing ||
		rating.missing == search.score.missing && rating.step > search.score.step && !chaintime.Same(rating.step, search.score.step) {
		return false
	}
	var fits bool
	if rating.share, fits = search.share(search.next); !fits {
		return false
	}
	if rating.sent = search.sender.Sent(search.next); !rating.better(&search.score) {
		return false
	}
	search.at, search.next, search.score = search.next, search.at, rating
	return true
}
