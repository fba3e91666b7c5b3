package strategy_test

import (
	"context"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// TestInterrupted: once the context is done no change is tried, though some
// would help; the rows themselves are still answered.
func TestInterrupted(t *testing.T) {
	p := problem(t, "llama-3.1-8b", "rtx-4090", 2, training(1))
	p.Workload.Strategy = costmodel.DeviceMap
	if len(strategy.Smallest(t.Context(), p, strategy.Options{})) == 0 {
		t.Fatal("nothing helps, so that nothing is tested")
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if got := strategy.Smallest(done, p, strategy.Options{}); len(got) > 0 {
		t.Errorf("after the end: %q", whats(got))
	}
	if rows, err := strategy.Rows(done, p, strategy.Options{}); err != nil || len(rows) == 0 || rows[0].Solution == nil {
		t.Errorf("no row after the end: %v, %+v", err, rows)
	}
}
