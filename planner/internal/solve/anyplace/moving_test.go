package anyplace

import (
	"context"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/downset"
)

// The other goroutine goes on with the contiguous answer while that is the best, where
// there is a limit, and hands in what is better.
func TestTheOtherGoroutineMovesRows(t *testing.T) {
	t.Parallel()
	over, stop := context.WithCancel(context.Background())
	stop()
	better := 0
	for seed := range uint64(6) {
		_, call := inARow(over, seed)
		side := call.newBeside()
		side.part = context.Background()
		side.lead(false)
		side.move(false, time.Hour)
		if side.ahead.search != nil {
			t.Fatalf("seed %d: rows are moved though there is no limit", seed)
		}
		side.lead(true)
		side.move(false, time.Nanosecond)
		if side.ahead.search == nil || side.ahead.moved <= 0 {
			t.Fatalf("seed %d: the contiguous answer is the best, but is not gone on with", seed)
		}
		if first := call.Answer.Value; side.ahead.better {
			better++
			call.takeRow(side.ahead.row, side.ahead.value, downset.ByMoves)
			if call.Answer.Value >= first {
				t.Errorf("seed %d: %v from %v is no better", seed, call.Answer.Value, first)
			}
		}
		call.Answer.Value = call.rowValue / 2
		side.lead(true)
		if side.ahead.row != nil || side.ahead.better {
			t.Errorf("seed %d: it is not the best, but leads", seed)
		}
	}
	if better < 3 {
		t.Errorf("%d contiguous answers of 6 are better for it", better)
	}
}
