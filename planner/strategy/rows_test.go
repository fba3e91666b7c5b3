package strategy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// TestFault: a row whose answer failed its own check differs from a row that the workload excludes.
func TestFault(t *testing.T) {
	rows := []strategy.Row{{Refused: errors.New("the model has no such layers")}}
	if err := strategy.Failed(rows); err != nil {
		t.Errorf("a refusal is told as a fault: %v", err)
	}
	w := costmodel.Workload{Strategy: costmodel.Pipeline, Runtime: "torch", Schedule: costmodel.GPipe}
	rows = append(rows, strategy.Row{Workload: w, Refused: fmt.Errorf("planner: %w", &certificate.FaultError{Msg: "1 is not 2"})})
	if err := strategy.Failed(rows); err == nil || !strings.Contains(err.Error(), "no answer for pipeline gpipe (torch): planner: 1 is not 2 (please report this)") {
		t.Errorf("%v", err)
	}
}
