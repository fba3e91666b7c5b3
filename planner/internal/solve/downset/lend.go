package downset

import (
	"context"
	"time"
)

// lender tells when bounds stand still.
type lender struct {
	move   *mover // the search that is lent to
	none   bool   // there is none
	bound  float64
	since  time.Time     // the bound rose so far
	still  time.Duration // is how long it must not to stand still
	spent  time.Duration // on the search since then
	latest time.Duration // round
}

// A bound that rises by less than gains of the gap in a part stillPart of the time that
// was left closes a fifth of it at most: it stands still. Of the time from then on the
// search is given one part in lentParts.
const gains, stillPart, lentParts = 0.02, 0.1, 3

// lend gives a second search a part of the time of branches whose bound stands still: what
// they no longer gain, answers may. Prices keep theirs: a trial of a load takes long, and
// where they are asked the gap is wide. Only where the first search runs beside, up to an
// end.
func (call *contiguous) lend(ctx context.Context) {
	lender := &call.lender
	end, timed := ctx.Deadline()
	if !timed || call.beside == nil || call.Answer.Place == nil || lender.none {
		return
	}
	if lender.still == 0 {
		lender.still = time.Duration(stillPart * float64(time.Until(end)))
	}
	if lender.since.IsZero() || call.Answer.LowerBound > lender.bound+gains*(call.Answer.Value-lender.bound) {
		lender.bound, lender.since, lender.spent = call.Answer.LowerBound, time.Now(), 0
		return
	}
	for ctx.Err() == nil && !call.Proven() && lender.due() {
		call.lent(ctx)
	}
	call.heed()
}

// due says that the search may have another round.
func (lender *lender) due() bool {
	return !lender.none && lentParts*(lender.spent+lender.latest) < time.Since(lender.since)-lender.still
}

// lent makes a round of the second search.
func (call *contiguous) lent(ctx context.Context) {
	lender := &call.lender
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
	lender.latest = time.Since(began)
	lender.spent += lender.latest
}
