package benchmark_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/benchmark"
)

func parsed(t *testing.T, text string, members ...string) benchfile.File {
	t.Helper()
	var has func(string) bool
	if len(members) > 0 {
		has = func(member string) bool { return member == members[0] }
	}
	file := fixtures.Must(benchfile.Reader([]byte(text), has)("f", []byte(text)))(t)
	return file
}

// The error names contiguous placements only if others are possible.
func TestSolveInfeasible(t *testing.T) {
	// The first and the last node would have to share a device, as the middle one fits with
	// neither.
	text := strings.NewReplacer(`"maxSizePerFPGA": 8`, `"maxSizePerFPGA": 5`, `"fpgaLatency": 6, "isBackwardNode": 0, "size": 2`, `"fpgaLatency": 6, "isBackwardNode": 0, "size": 4`).Replace(problem)
	for _, c := range []struct{ text, want string }{
		{text, "no contiguous placement is possible"},
		{strings.Replace(problem, `"maxSizePerFPGA": 8`, `"maxSizePerFPGA": 1`, 1), "no placement is possible"},
	} {
		_, err := benchmark.Solve(context.Background(), parsed(t, c.text, "maxFPGAs"), benchmark.Settings{})
		var none *benchmark.InfeasibleError
		if !errors.As(err, &none) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

func TestSolvePiper(t *testing.T) {
	data := fixtures.Must(os.ReadFile("../../fixtures/workloads/piper/bert32a100.json"))(t)
	file := parsed(t, string(data), "mbsInBatch")
	answer, err := benchmark.Solve(context.Background(), file, benchmark.Settings{})
	if err != nil || !answer.Optimal() || len(answer.Devices) == 0 {
		t.Fatalf("%+v, %v", answer, err)
	}
	slowest := 0.0
	for _, stage := range answer.Devices {
		slowest = max(slowest, stage.Time+stage.Transfers)
	}
	if slowest != answer.Value {
		t.Errorf("the slowest stage takes %v, the answer says %v", slowest, answer.Value)
	}
}

func TestSolveOfNoDevices(t *testing.T) {
	const profile = "node1 -- Input0 -- forward_compute_time=0, backward_compute_time=0, activation_size=0, parameter_size=0\n"
	if _, err := benchmark.Solve(context.Background(), parsed(t, profile), benchmark.Settings{}); err == nil || !strings.Contains(err.Error(), "no devices") {
		t.Errorf("%v", err)
	}
}

// TestSolvePiperParallel: stages of several devices are no slower, and given degrees are kept.
func TestSolvePiperParallel(t *testing.T) {
	data := fixtures.Must(os.ReadFile("../../fixtures/workloads/piper/bert32a100.json"))(t)
	file := parsed(t, string(data), "mbsInBatch")
	straight := fixtures.Must(benchmark.Solve(context.Background(), file, benchmark.Settings{Data: 1, Tensor: 1}))(t)
	free, err := benchmark.Solve(context.Background(), file, benchmark.Settings{Data: -1, Tensor: -1})
	if err != nil || !free.Optimal() || free.Value > straight.Value {
		t.Errorf("%+v, %v; straight %v", free, err, straight.Value)
	}
	fixed, err := benchmark.Solve(context.Background(), file, benchmark.Settings{Data: 5, Tensor: 2})
	if err != nil || len(fixed.Devices) != 1 || !strings.Contains(fixed.Devices[0].Name, "stage 0, 5 × 2") {
		t.Errorf("10 devices, 5 × 2: %+v, %v", fixed, err)
	}
	var text strings.Builder
	if err := fixed.Write(&text); err != nil || !strings.Contains(text.String(), `"dataParallelDegree":5`) {
		t.Errorf("%s, %v", text.String(), err)
	}
	if _, err := benchmark.Solve(context.Background(), file, benchmark.Settings{Data: 7}); err == nil {
		t.Error("7 replicas share 1920 micro-batches")
	}
	if _, err := benchmark.Solve(context.Background(), parsed(t, problem, "maxFPGAs"), benchmark.Settings{Tensor: -1}); err == nil {
		t.Error("a dnn-partitioning file's parts were tensor-parallel")
	}
}
