package stagetime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
	"github.com/devmap-dev/devmap/planner/internal/stagetime"
)

// looks is a context that ends after a number of calls of Err.
type looks struct {
	context.Context
	left, count int
}

func (looks *looks) Err() error {
	looks.count++
	if looks.count > looks.left {
		return context.Canceled
	}
	return nil
}

// longPipeline returns a pipeline of declared layers on equal GPUs.
func longPipeline(t *testing.T, layers, gpus int) planner.Problem {
	t.Helper()
	all := make([]string, layers)
	for layer := range all {
		all[layer] = fmt.Sprintf(`{"name":"h.%d","declared":{"params_bytes":1048576,"activation_bytes":4096,"output_bytes":1024,"forward_seconds":%de-6,"backward_seconds":0}}`, layer, 100+layer%7)
	}
	graph := fixtures.Must(modelgraph.Read(strings.NewReader(`{"format_version":"devmap.model/v1","name":"long","layers":[`+strings.Join(all, ",")+"]}"), "long.json"))(t)
	gpu := costmodel.Device{Name: "GPU", CapacityBytes: 80 << 30, FLOPS: 4e14, Rates: costmodel.Rates{BytesPerSecond: 3e12, LinkBytesPerSecond: 2e11}}
	problem, err := planner.Problem{
		Graph: graph, Objective: planner.Time, Topology: &costmodel.Topology{Devices: slices.Repeat([]costmodel.Device{gpu}, gpus)},
		Workload: costmodel.Workload{Mode: costmodel.Infer, Strategy: costmodel.Pipeline, Batch: 8, MicroBatches: 8},
	}.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	return problem
}

// TestTablesStopped: making a search's tables stops at the first check of an ended context. There
// is a check at every stage.
func TestTablesStopped(t *testing.T) {
	t.Parallel()
	problem := longPipeline(t, 600, 4)
	in := randomproblem.Instance(t, &problem)
	whole := &looks{t.Context(), 1 << 30, 0}
	if made, err := stagetime.Tables(whole, in); err != nil || !made || whole.count < 8 {
		t.Fatalf("%d looks, %t, %v: nothing is tested", whole.count, made, err)
	}
	for _, left := range []int{0, whole.count / 2, whole.count - 1} {
		ends := &looks{t.Context(), left, 0}
		if made, err := stagetime.Tables(ends, in); err != nil || made || ends.count != left+1 {
			t.Errorf("the context ends at look %d, and there were %d (%t, %v)", left+1, ends.count, made, err)
		}
	}
}

// TestStoppedInTables: a search that is stopped while it makes large tables returns the balanced
// cuts from before.
func TestStoppedInTables(t *testing.T) {
	t.Parallel()
	problem := longPipeline(t, 1100, 4)
	in := randomproblem.Instance(t, &problem)
	rough := fixtures.Must(stagetime.Balanced(t.Context(), in))(t)
	answer, err := stagetime.Method{}.Solve(&looks{t.Context(), 60, 0}, in, instance.Limits{}, nil)
	if err != nil || answer.Value != rough.Value || !answer.Stopped || len(answer.Notes) > 0 {
		t.Errorf("%+v, %v; the balanced cuts take %v", answer, err, rough.Value)
	}
}

// TestLate: a search of a large problem does not start after its time has ended.
func TestLate(t *testing.T) {
	t.Parallel()
	problem := longPipeline(t, 600, 256)
	in := randomproblem.Instance(t, &problem)
	ended := &looks{t.Context(), 0, 0}
	answer, err := stagetime.Method{}.Solve(ended, in, instance.Limits{}, nil)
	if !errors.Is(err, instance.ErrNone) || !answer.Stopped || ended.count != 1 {
		t.Errorf("%+v, %v after %d looks", answer, err, ended.count)
	}
}
