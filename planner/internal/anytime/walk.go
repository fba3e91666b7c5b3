package anytime

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/anywhere"
	"github.com/devmap-dev/devmap/planner/internal/chaintime"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// score is what maps are compared by: crossings without a link, the step,
// the largest share and the bytes sent.
type score struct {
	missing     int
	step, share float64
	sent        int64
}

func (s *score) better(than *score) bool {
	switch {
	case s.missing != than.missing:
		return s.missing < than.missing
	case !chaintime.Same(s.step, than.step):
		return s.step < than.step
	case math.Abs(s.share-than.share) > instance.Tolerance:
		return s.share < than.share
	}
	return s.sent < than.sent
}

// walk is a local search over maps of any form, which all fit.
type walk struct {
	*stepper
	ctx       context.Context
	rng       *rand.Rand
	at, next  devicemap.Map
	score     score
	best      devicemap.Map
	bestScore score
	bounds    []instance.BoundValue
	memory    *headroom // once it is asked for
	tried     int
	left      int // maps to score yet
}

// Bounds of the search: maps scored, and disturbances of a local optimum.
const (
	maxScored = 1_000_000
	maxKicks  = 100
)

func newWalk(ctx context.Context, sc *anywhere.Problem, from devicemap.Map) *walk {
	w := &walk{stepper: newStepper(sc), ctx: ctx, rng: rand.New(rand.NewPCG(1, 2)), left: maxScored}
	w.at, w.next = slices.Clone(from), slices.Clone(from)
	w.score = w.scoreOf(w.at)
	w.best, w.bestScore = slices.Clone(from), w.score
	return w
}

func (w *walk) scoreOf(m devicemap.Map) (s score) {
	s.step, s.missing = w.seconds(m)
	s.share, _ = w.share(m)
	s.sent = w.sender.Sent(m)
	return s
}

func (w *walk) stopped() bool { return w.left <= 0 || w.ctx.Err() != nil }

// closed reports that no map has a shorter step than the best.
func (w *walk) closed() bool {
	for _, b := range w.bounds {
		if w.bestScore.missing == 0 && w.bestScore.step*(1-instance.Tolerance) <= b.Value {
			return true
		}
	}
	return false
}

func (w *walk) keep() {
	if w.score.better(&w.bestScore) {
		copy(w.best, w.at)
		w.bestScore = w.score
	}
}

// try goes on to the map at hand with a change, if it fits and is better.
func (w *walk) try(change func(devicemap.Map)) bool {
	copy(w.next, w.at)
	change(w.next)
	w.tried++
	w.left--
	s := score{sent: math.MaxInt64}
	if s.step, s.missing = w.seconds(w.next); s.missing > w.score.missing ||
		s.missing == w.score.missing && s.step > w.score.step && !chaintime.Same(s.step, w.score.step) {
		return false
	}
	var fits bool
	if s.share, fits = w.share(w.next); !fits {
		return false
	}
	if s.sent = w.sender.Sent(w.next); !s.better(&w.score) {
		return false
	}
	w.at, w.next, w.score = w.next, w.at, s
	return true
}
