package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/worker"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cpu"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// swollen is a backend that reports a false growth of the process. Bound is the type of a bound
// program, which has no exported name.
type swollen[Bound any] struct {
	open   func(context.Context, Bound) (executor.Machine, error)
	growth int64
}

func swell[Bound any](open func(context.Context, Bound) (executor.Machine, error), growth int64) *swollen[Bound] {
	return &swollen[Bound]{open, growth}
}

func (*swollen[Bound]) Name() string { return "cpu" }

func (backend *swollen[Bound]) Open(ctx context.Context, bound Bound) (executor.Machine, error) {
	machine, err := backend.open(ctx, bound)
	return &swollenMachine{machine, backend.growth}, err
}

type swollenMachine struct {
	executor.Machine

	growth int64
}

func (machine *swollenMachine) Growth() int64 { return machine.growth }

// TestRunVerdicts: after the verdict fail, the next plan still runs, and the status is the one of a
// failed check. After the verdict inconclusive the status is 0.
func TestRunVerdicts(t *testing.T) {
	t.Parallel()
	plan := plannedToy(t, "--gpus", "1")
	for growth, want := range map[int64]error{1 << 20: nil, 1 << 30: out.ErrCheck, -1: nil} {
		verdict := map[int64]string{1 << 20: "pass", 1 << 30: "fail", -1: "inconclusive"}[growth]
		var stdout, stderr bytes.Buffer
		cmd := newRun(worker.Self{}, swell(cpu.New().Open, growth))
		cmd.SetArgs([]string{plan, plan, "--weights", "random", "--json"})
		cmd.SetOut(&stdout)
		cmd.SetErr(&stderr)
		err := cmd.ExecuteContext(t.Context())
		if !errors.Is(err, want) || strings.Count(stdout.String(), `"verdict": "`+verdict+`"`) != 2 {
			t.Errorf("growth %d: %v, want %v and twice %s:\n%s%s", growth, err, want, verdict, stdout.String(), stderr.String())
		}
	}
}

// plannedToy returns the file of a plan of a small model for devmap's engine.
func plannedToy(t *testing.T, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	config, plan := filepath.Join(dir, "config.json"), filepath.Join(dir, "plan.json")
	text := `{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":16,"intermediate_size":16,"num_hidden_layers":2,"num_attention_heads":2,"vocab_size":32,"torch_dtype":"float32"}`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	devmap(t, 0, slices.Concat([]string{"plan", config, "--seq", "4", "--runtime", "devmap", "-o", plan}, flags)...)
	return plan
}

// TestReportContract compares the JSON of a run with the contract, and with its plan.
func TestReportContract(t *testing.T) {
	t.Parallel()
	plan := plannedToy(t, "--gpus", "2", "--strategy", "pipeline", "--mode", "train", "--batch", "2", "--micro-batches", "2")
	var planned struct {
		Devices []struct {
			Predicted map[string]any `json:"predicted"`
		} `json:"devices"`
		Imbalance   float64 `json:"imbalance"`
		StepSeconds float64 `json:"step_seconds"`
	}
	data := fixtures.Must(os.ReadFile(plan))(t)
	if err := json.Unmarshal(data, &planned); err != nil {
		t.Fatal(err)
	}
	var made struct {
		FormatVersion string            `json:"format_version"`
		Plan          string            `json:"plan"`
		Model         map[string]string `json:"model"`
		Backend       string            `json:"backend"`
		Devices       []struct {
			Device    int            `json:"device"`
			Predicted map[string]any `json:"predicted"`
			Measured  struct {
				PeakAllocatedBytes int64  `json:"peak_allocated_bytes"`
				DeviceUsedBytes    *int64 `json:"device_used_bytes"`
			} `json:"measured"`
			Ratio   float64 `json:"ratio"`
			Regions []struct {
				Name         string `json:"name"`
				PlannedBytes int64  `json:"planned_bytes"`
				TouchedBytes int64  `json:"touched_bytes"`
			} `json:"regions"`
			Unwritten []struct {
				Buffer string `json:"buffer"`
				Bytes  int64  `json:"bytes"`
				Why    string `json:"why"`
			} `json:"unwritten"`
		} `json:"devices"`
		Imbalance struct {
			Predicted float64 `json:"predicted"`
			Measured  float64 `json:"measured"`
		} `json:"imbalance"`
		Steps []struct {
			Step    int64            `json:"step"`
			Loss    float64          `json:"loss"`
			Seconds float64          `json:"seconds"`
			Devices []map[string]any `json:"devices"`
		} `json:"steps"`
		StepSeconds struct {
			Predicted float64 `json:"predicted"`
			Measured  float64 `json:"measured"`
		} `json:"step_seconds"`
		TokensPerSecond float64   `json:"tokens_per_second"`
		Tokens          [][]int32 `json:"tokens"`
		Scalars         string    `json:"scalars"`
		Links           []any     `json:"links"`
		Verdict         string    `json:"verdict"`
		Reasons         []string  `json:"reasons"`
	}
	decode(t, devmap(t, 0, "run", plan, "--weights", "random", "--steps", "2", "--json"), &made)
	if made.Verdict != "pass" || len(made.Steps) != 2 || len(made.Devices) != 2 || made.Imbalance.Predicted != planned.Imbalance || made.StepSeconds.Predicted != planned.StepSeconds {
		t.Errorf("%+v of the plan %+v", made, planned)
	}
	for i, device := range made.Devices {
		if want := planned.Devices[i].Predicted; !reflect.DeepEqual(device.Predicted, want) || float64(device.Measured.PeakAllocatedBytes) != want["peak_allocated_bytes"] {
			t.Errorf("device %d: %+v, planned %v", i, device, want)
		}
		sum := int64(0)
		for _, region := range device.Regions {
			if sum += region.PlannedBytes; region.Name != "workspace" && region.TouchedBytes != region.PlannedBytes {
				t.Errorf("device %d: %+v", i, region)
			}
		}
		if sum != device.Measured.PeakAllocatedBytes {
			t.Errorf("device %d: regions of %d bytes in an arena of %d", i, sum, device.Measured.PeakAllocatedBytes)
		}
	}
}

// TestRunFaults: run prints the faults of a plan's map like check, one per line, and has check's
// status.
func TestRunFaults(t *testing.T) {
	t.Parallel()
	plan := plannedToy(t, "--gpus", "1")
	data := fixtures.Must(os.ReadFile(plan))(t)
	broken := strings.Replace(string(data), `"lm_head": 0`, `"lm_hat": 0`, 1)
	if broken == string(data) {
		t.Fatalf("the plan has no lm_head:\n%s", data)
	}
	if err := os.WriteFile(plan, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), []string{"run", plan, "--weights", "random"}, &stdout, &stderr)
	if lines := strings.Split(stderr.String(), "\n"); status != 4 || len(lines) != 4 || lines[2] != "2 faults" {
		t.Errorf("status %d:\n%s", status, &stderr)
	}
}

// TestRunStalePlan: measured bytes are compared with the plan's, not with a new plan's.
func TestRunStalePlan(t *testing.T) {
	t.Parallel()
	for _, more := range []int64{-256, 256} {
		file := plannedToy(t, "--gpus", "1")
		plan := fixtures.Must(devicemap.ReadPlan(file))(t)
		plan.Devices[0].Predicted.ParamsBytes += more
		plan.Devices[0].Predicted.PeakAllocatedBytes += more
		plan.Devices[0].HeadroomBytes -= more
		var text bytes.Buffer
		if err := devicemap.WriteJSON(&text, plan); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("device 0: its peak is %d bytes, 256 %s than the plan's", plan.Devices[0].Predicted.PeakAllocatedBytes-more, map[bool]string{true: "more", false: "less"}[more < 0])
		if report := devmap(t, 4, "run", file, "--weights", "random", "--json"); !strings.Contains(string(report), want) {
			t.Errorf("want %q in\n%s", want, report)
		}
	}
}
