package posed_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/posed"
)

func parsed(t *testing.T, text string, members ...string) benchfile.File {
	t.Helper()
	var has func(string) bool
	if len(members) > 0 {
		has = func(member string) bool { return member == members[0] }
	}
	file, err := benchfile.Reader([]byte(text), has)("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// What contiguous placements alone cannot do is said to be theirs.
func TestSolveInfeasible(t *testing.T) {
	// The last and the first share a device, and the one between them fits
	// beside neither.
	text := strings.NewReplacer(`"maxSizePerFPGA": 8`, `"maxSizePerFPGA": 5`, `"fpgaLatency": 6, "isBackwardNode": 0, "size": 2`, `"fpgaLatency": 6, "isBackwardNode": 0, "size": 4`).Replace(problem)
	file := parsed(t, text, "maxFPGAs")
	_, err := posed.Solve(context.Background(), file, posed.Settings{})
	var none *posed.InfeasibleError
	if !errors.As(err, &none) || !none.Contiguous || !strings.Contains(err.Error(), "no contiguous placement is possible") {
		t.Errorf("contiguous: %v", err)
	}
	answer, err := posed.Solve(context.Background(), file, posed.Settings{Anywhere: true})
	if err != nil || answer.Value != 6 || answer.Devices[0].Nodes+answer.Devices[1].Nodes != 3 {
		t.Errorf("anywhere: %+v, %v", answer, err)
	}
	nowhere := parsed(t, strings.Replace(problem, `"maxSizePerFPGA": 8`, `"maxSizePerFPGA": 1`, 1), "maxFPGAs")
	if _, err = posed.Solve(context.Background(), nowhere, posed.Settings{}); !errors.As(err, &none) || none.Contiguous {
		t.Errorf("1 byte a device: %v", err)
	}
}

func TestSolvePiper(t *testing.T) {
	data, err := os.ReadFile("../../fixtures/workloads/piper/bert32a100.json")
	if err != nil {
		t.Fatal(err)
	}
	file := parsed(t, string(data), "mbsInBatch")
	answer, err := posed.Solve(context.Background(), file, posed.Settings{})
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
	if _, err := posed.Solve(context.Background(), file, posed.Settings{Anywhere: true}); err == nil {
		t.Error("a pipeline's stages were placed anywhere")
	}
}

func TestSolveOfNoDevices(t *testing.T) {
	const profile = "node1 -- Input0 -- forward_compute_time=0, backward_compute_time=0, activation_size=0, parameter_size=0\n"
	if _, err := posed.Solve(context.Background(), parsed(t, profile), posed.Settings{}); err == nil || !strings.Contains(err.Error(), "no devices") {
		t.Errorf("%v", err)
	}
}

// TestSolveLatency: three nodes in a row that fit one accelerator take their
// sum there, whether it is called once or may be called more often.
func TestSolveLatency(t *testing.T) {
	file := parsed(t, problem, "maxFPGAs")
	for _, anywhere := range []bool{false, true} {
		answer, err := posed.Solve(context.Background(), file, posed.Settings{Latency: true, Anywhere: anywhere})
		if err != nil || answer.Value != 12 || !answer.Optimal() || answer.Objective != "latency" || len(answer.Devices) != 2 {
			t.Errorf("anywhere %v: %+v, %v", anywhere, answer, err)
		}
	}
	var none *posed.InfeasibleError
	nowhere := parsed(t, strings.Replace(problem, `"maxSizePerFPGA": 8`, `"maxSizePerFPGA": 1`, 1), "maxFPGAs")
	if _, err := posed.Solve(context.Background(), nowhere, posed.Settings{Latency: true}); !errors.As(err, &none) {
		t.Errorf("1 byte a device: %v", err)
	}
	if _, err := posed.Solve(context.Background(), parsed(t, "node1 -- Input0 -- forward_compute_time=0, backward_compute_time=0, activation_size=0, parameter_size=0\n"), posed.Settings{Latency: true}); err == nil {
		t.Error("a profile without devices was solved")
	}
}

// TestSolvePiperParallel: stages that may take more devices are no slower, and
// degrees that are given are kept.
func TestSolvePiperParallel(t *testing.T) {
	data, err := os.ReadFile("../../fixtures/workloads/piper/bert32a100.json")
	if err != nil {
		t.Fatal(err)
	}
	file := parsed(t, string(data), "mbsInBatch")
	straight, err := posed.Solve(context.Background(), file, posed.Settings{Data: 1, Tensor: 1})
	if err != nil {
		t.Fatal(err)
	}
	free, err := posed.Solve(context.Background(), file, posed.Settings{Data: -1, Tensor: -1})
	if err != nil || !free.Optimal() || free.Value > straight.Value {
		t.Errorf("%+v, %v; straight %v", free, err, straight.Value)
	}
	fixed, err := posed.Solve(context.Background(), file, posed.Settings{Data: 5, Tensor: 2})
	if err != nil || len(fixed.Devices) != 1 || !strings.Contains(fixed.Devices[0].Name, "stage 0, 5 × 2") {
		t.Errorf("10 devices, 5 × 2: %+v, %v", fixed, err)
	}
	var text strings.Builder
	if err := fixed.Write(&text); err != nil || !strings.Contains(text.String(), `"dataParallelDegree":5`) {
		t.Errorf("%s, %v", text.String(), err)
	}
	if _, err := posed.Solve(context.Background(), file, posed.Settings{Data: 7}); err == nil {
		t.Error("7 replicas share 1920 micro-batches")
	}
	if _, err := posed.Solve(context.Background(), parsed(t, problem, "maxFPGAs"), posed.Settings{Tensor: -1}); err == nil {
		t.Error("a dnn-partitioning file's parts were tensor-parallel")
	}
}
