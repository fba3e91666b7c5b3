package downset

import (
	"context"
	"time"
)

// lender tells when bounds stand still.
type lender struct {
	move  *mover // the search that is lent to
	none  bool   // there is none
	bound float64
	since time.Time     // the bound rose so far
	spent time.Duration // on the search since then
}

// gains is the part of the gap that a bound must rise by to count as one that does.
const gains = 0.02

// lend gives a second search as much time as the bounds took since they last rose: what
// they no longer gain, answers may. Only where the first search runs beside, up to an
// end.
func (call *contiguous) lend(ctx context.Context) {
	lender := &call.lender
	if _, timed := ctx.Deadline(); !timed || call.beside == nil || call.Answer.Place == nil || lender.none {
		return
	}
	now := time.Now()
	if lender.since.IsZero() || call.Answer.LowerBound > lender.bound+gains*(call.Answer.Value-lender.bound) {
		lender.bound, lender.since, lender.spent = call.Answer.LowerBound, now, 0
		return
	}
	for ctx.Err() == nil && !call.Proven() && 2*lender.spent < time.Since(lender.since) {
		if lender.move == nil {
			if lender.move = call.newMover(ctx, 4); lender.move == nil {
				lender.none = true
				return
			}
		}
		began := time.Now()
		call.heed()
		lender.move.learn(call.Answer.Place, call.Answer.Value)
		if place, _ := lender.move.round(ctx); place != nil {
			call.Take(place, ByMoves)
		}
		lender.spent += time.Since(began)
	}
	call.heed()
}
