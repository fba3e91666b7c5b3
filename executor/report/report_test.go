package report

import (
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

const mebibyte = int64(1 << 20)

// asPlanned returns a run of two devices with every byte in its planned place.
func asPlanned() (*Prediction, *executor.Job, *executor.Result) {
	seconds := 0.25
	prediction := &Prediction{Plan: "plan.json", Imbalance: 1.25, StepSeconds: &seconds}
	job := &executor.Job{Graph: &modelgraph.Graph{Name: "toy"}, Workload: &costmodel.Workload{Mode: costmodel.Train}, Program: &program.Program{Plan: "sha256:1"}}
	result := &executor.Result{
		Backend: "cpu", StepSeconds: 2, TokensPerSecond: 64, Growth: 800*mebibyte + 70*mebibyte,
		Steps: []executor.StepResult{{Number: 1, Loss: 5.5, Times: executor.Times{Step: 2 * time.Second, Devices: []executor.DeviceTimes{{Forward: time.Second}, {Wait: time.Second}}}}},
	}
	for device, arena := range []int64{500 * mebibyte, 300 * mebibyte} {
		prediction.Devices = append(prediction.Devices, devicemap.Prediction{Device: device, Predicted: devicemap.Predicted{PeakAllocatedBytes: arena}})
		job.Program.Devices = append(job.Program.Devices, program.Device{ID: int32(device), Arena: arena})
		result.Devices = append(result.Devices, executor.DeviceResult{
			Device: int32(device), Touched: arena,
			Regions: []executor.RegionResult{{Name: "workspace", PlannedBytes: 100}, {Name: "state", PlannedBytes: arena - 100, TouchedBytes: arena - 100}},
			Gaps:    []executor.Gap{{Buffer: "workspace", Reason: "library workspace", Bytes: 100}},
		})
	}
	return prediction, job, result
}

// TestVerdict: what was planned and nothing else passes, and each thing that can
// be otherwise says so.
func TestVerdict(t *testing.T) {
	t.Parallel()
	for name, is := range map[string]struct {
		change  func(*Prediction, *executor.Result)
		verdict Verdict
		reason  string
	}{
		"as planned": {func(*Prediction, *executor.Result) {}, Pass, "all planned memory was used, nothing outside it"},
		"a region that is not reached": {
			func(_ *Prediction, result *executor.Result) { result.Devices[1].Regions[1].TouchedBytes -= 4 }, Fail, "device 1: the last 4 of the 314572700 bytes of region state were never written",
		},
		"one of which a sequence stopped": {
			func(_ *Prediction, result *executor.Result) {
				result.Devices[1].Regions[1].TouchedBytes -= 4
				result.Stopped = true
			}, Pass, "nothing was written outside the planned memory; some of it was not used, because every sequence reached a stop id",
		},
		"a region that is passed": {
			func(_ *Prediction, result *executor.Result) { result.Devices[0].Regions[1].TouchedBytes++ }, Fail, "device 0: region state was written 1 byte beyond its end at 524287900",
		},
		"bytes between buffers": {
			func(_ *Prediction, result *executor.Result) { result.Devices[0].Stray = 8 }, Fail, "device 0: 8 bytes written outside of all buffers",
		},
		"values that nothing wrote": {
			func(_ *Prediction, result *executor.Result) {
				result.Devices[0].Gaps = append(result.Devices[0].Gaps, executor.Gap{Buffer: "h.0.weights", Reason: "values", Bytes: 12, Missed: true})
			}, Fail, "device 0: 12 bytes of buffer h.0.weights never written: values",
		},
		"more than was foretold": {
			func(prediction *Prediction, _ *executor.Result) {
				prediction.Devices[0].Predicted.PeakAllocatedBytes -= 256
			}, Fail, "device 0: its peak is 524288000 bytes, 256 more than the plan's",
		},
		"less than was foretold": {
			func(prediction *Prediction, _ *executor.Result) {
				prediction.Devices[0].Predicted.PeakAllocatedBytes += 256
			}, Fail, "device 0: its peak is 524288000 bytes, 256 less than the plan's",
		},
		"a process as large as it may be": {
			func(_ *Prediction, result *executor.Result) { result.Growth = 880 * mebibyte }, Pass, "the process grew 880.0 MiB (limit 880.0 MiB: 800.0 MiB of arenas and 80.0 MiB)",
		},
		"a byte more": {
			func(_ *Prediction, result *executor.Result) { result.Growth = 880*mebibyte + 1 }, Fail, "the process grew 880.0 MiB (above the limit of 880.0 MiB: 800.0 MiB of arenas and 80.0 MiB)",
		},
		"a process of unknown size": {
			func(_ *Prediction, result *executor.Result) { result.Growth = -1 }, Inconclusive, "the growth of the process is unknown: this system does not report it",
		},
		"that, and a fault": {
			func(_ *Prediction, result *executor.Result) { result.Growth, result.Devices[0].Stray = -1, 1 }, Fail, "device 0: 1 byte written outside of all buffers",
		},
	} {
		prediction, job, result := asPlanned()
		is.change(prediction, result)
		made := Of(prediction, job, result)
		if made.Verdict != is.verdict || !strings.Contains(strings.Join(made.Reasons, "\n")+"\n", is.reason+"\n") {
			t.Errorf("%s: %s, because\n%s\nwant %s, because\n%s", name, made.Verdict, strings.Join(made.Reasons, "\n"), is.verdict, is.reason)
		}
	}
}

// TestHostGrowth: activations that wait in host memory may grow the process by their bytes.
func TestHostGrowth(t *testing.T) {
	t.Parallel()
	for growth, want := range map[int64]Verdict{980 * mebibyte: Pass, 980*mebibyte + 1: Fail} {
		prediction, job, result := asPlanned()
		job.Program.Buffers = append(job.Program.Buffers, program.Buffer{Device: 1, Bytes: 100 * mebibyte, Class: program.Host})
		result.Growth = growth
		made := Of(prediction, job, result)
		if reasons := strings.Join(made.Reasons, "\n"); made.Verdict != want || !strings.Contains(reasons, "980.0 MiB: 800.0 MiB of arenas, 100.0 MiB of host memory and 80.0 MiB)") {
			t.Errorf("%d: %s, want %s: %s", growth, made.Verdict, want, reasons)
		}
	}
}

// TestSmallArenas: a small run may take what any process does.
func TestSmallArenas(t *testing.T) {
	t.Parallel()
	for growth, want := range map[int64]Verdict{64*mebibyte + 1000: Pass, 64*mebibyte + 1001: Fail} {
		prediction, job, result := asPlanned()
		job.Program.Devices[0].Arena, job.Program.Devices[1].Arena = 400, 600
		result.Growth = growth
		if made := Of(prediction, job, result); made.Verdict != want {
			t.Errorf("%d: %s, want %s", growth, made.Verdict, want)
		}
	}
}

// TestImbalanceOfIdle: a GPU that allocated nothing counts in the mean.
func TestImbalanceOfIdle(t *testing.T) {
	t.Parallel()
	for want, peaks := range map[float64][]int64{2: {500, 0}, 2.5: {100, 500, 0, 0, 400}, 1: {0, 0}} {
		devices := make([]Device, len(peaks))
		for i, peak := range peaks {
			devices[i].Measured.PeakAllocatedBytes = peak
		}
		if got := imbalance(devices); got != want {
			t.Errorf("peaks %d: %v, want %v", peaks, got, want)
		}
	}
}

// TestFigures: measured and predicted figures.
func TestFigures(t *testing.T) {
	t.Parallel()
	prediction, job, result := asPlanned()
	result.Devices[1].Touched = 100 * mebibyte
	made := Of(prediction, job, result)
	second := made.Devices[1]
	if second.Measured.PeakAllocatedBytes != 100*mebibyte || *second.Ratio != 1.0/3 || made.Imbalance.Predicted != 1.25 || made.Imbalance.Measured != 500.0/300 {
		t.Errorf("%+v, imbalance %+v", second, made.Imbalance)
	}
	step := made.Steps[0]
	if *step.Loss != 5.5 || step.Seconds != 2 || step.Devices[1] != (DeviceTime{Device: 1, Wait: 1}) || *made.StepSeconds.Predicted != 0.25 || *made.StepSeconds.Measured != 2 {
		t.Errorf("%+v, %+v", step, made.StepSeconds)
	}
	if made.Loading != nil {
		t.Errorf("nothing was poured, and %+v", made.Loading)
	}
	job.Workload.Mode, result.Steps = costmodel.Load, nil
	result.Loading = &executor.Transfer{Bytes: 3e9, Seconds: 0.0625, DiskBytes: 1e9, DiskSeconds: 0.25}
	made = Of(prediction, job, result)
	if *made.Loading != (Loading{3e9, 0.0625, 48e9, 1e9, 4e9}) {
		t.Errorf("%+v", made.Loading)
	}
	if made.StepSeconds.Measured != nil || made.TokensPerSecond != nil || len(made.Steps) > 0 {
		t.Errorf("nothing ran, and %+v", made)
	}
	job.Workload.Mode, result.Steps = costmodel.Infer, []executor.StepResult{{Number: 1}}
	if made = Of(prediction, job, result); made.Steps[0].Loss != nil {
		t.Error("a forward has a loss")
	}
}
