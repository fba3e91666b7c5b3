package strategy_test

import (
	"context"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// TestInterrupted: once the context is done no change is tried, though some would help; the rows
// themselves are still answered.
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

// TestLateRows: once the context is done, the rows of a large problem are refused after the first
// that has an answer.
func TestLateRows(t *testing.T) {
	p := problem(t, "llama-3.1-8b", "h100-80gb", 1<<12, costmodel.Workload{Mode: costmodel.Infer, Batch: 1})
	done, cancel := context.WithCancel(t.Context())
	cancel()
	rows, err := strategy.Rows(done, p, strategy.Options{})
	answered, late := 0, 0
	for i := range rows {
		switch {
		case rows[i].Refused == nil:
			answered++
		case strings.Contains(rows[i].Refused.Error(), "the time ended before"):
			late++
		}
	}
	if err != nil || answered != 1 || late == 0 {
		t.Errorf("%d rows with an answer, %d late, %v", answered, late, err)
	}
}
