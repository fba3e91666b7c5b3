package report

import (
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/executor"
)

// onOne is the run of asPlanned on one GPU, which both devices share: arenas of
// 800 MiB and a context of 500, while another process has 100.
func onOne() (*Prediction, *executor.Job, *executor.Result) {
	prediction, job, result := asPlanned()
	prediction.GPUs = map[int32]string{0: "GPU-a", 1: "GPU-a"}
	for i := range prediction.Devices {
		predicted := &prediction.Devices[i].Predicted
		predicted.OverheadBytes = 250 * mebibyte
		predicted.DeviceUsedBytes = predicted.PeakAllocatedBytes + predicted.OverheadBytes
	}
	result.Growth = -1
	result.GPUs = []executor.GPUResult{{
		GPU: 3, UUID: "GPU-b", Name: "H100", Devices: []int32{0, 1}, Total: 80 << 30, Arenas: 800 * mebibyte,
		Before: 100 * mebibyte, Context: 590 * mebibyte, Ready: 1400 * mebibyte, After: 603 * mebibyte,
		Fences: 4, FenceLow: 1400 * mebibyte, FenceHigh: 1401 * mebibyte,
	}}
	return prediction, job, result
}

// TestUsed: what a GPU holds is judged to 16 MiB or a thousandth, with what all its
// devices were predicted and one context.
func TestUsed(t *testing.T) {
	t.Parallel()
	for name, is := range map[string]struct {
		change  func(*Prediction, *executor.GPUResult)
		verdict Verdict
		reason  string
	}{
		"as planned": {func(*Prediction, *executor.GPUResult) {}, Pass, "GPU 3 (H100) held 1.27 GiB at each of 4 fences, 1.0 MiB more than the 1.27 GiB that is predicted, at most 16.0 MiB apart"},
		"as much more as may be": {
			func(_ *Prediction, gpu *executor.GPUResult) { gpu.FenceHigh = 1416 * mebibyte }, Pass, "16.0 MiB more than",
		},
		"a byte more at one fence": {
			func(_ *Prediction, gpu *executor.GPUResult) { gpu.FenceHigh = 1416*mebibyte + 1 }, Fail, "more than 16.0 MiB apart",
		},
		"a byte less at one fence": {
			func(_ *Prediction, gpu *executor.GPUResult) { gpu.FenceLow = 1384*mebibyte - 1 }, Fail, "16.0 MiB less than the 1.27 GiB",
		},
		"a thousandth": {
			func(prediction *Prediction, gpu *executor.GPUResult) {
				prediction.Devices[0].Predicted.DeviceUsedBytes += 70000 * mebibyte
				gpu.FenceLow, gpu.FenceHigh = 71471*mebibyte, 71471*mebibyte
			}, Pass, "71.0 MiB more than",
		},
		"no fence": {
			func(_ *Prediction, gpu *executor.GPUResult) { gpu.Fences, gpu.FenceLow, gpu.FenceHigh = 0, 0, 0 }, Pass, "held 1.27 GiB, which is to the byte the 1.27 GiB that is predicted, at most",
		},
		"others that moved": {
			func(_ *Prediction, gpu *executor.GPUResult) { gpu.Moved = "process 7 came" }, Inconclusive, "while others moved: process 7 came",
		},
		"page tables of kept copies": {
			func(_ *Prediction, gpu *executor.GPUResult) {
				gpu.Tables, gpu.TablesAfter = 30*mebibyte, 60*mebibyte
				gpu.FenceLow, gpu.FenceHigh, gpu.After = 1430*mebibyte, 1430*mebibyte, 663*mebibyte
			}, Pass, "which is to the byte",
		},
		"page tables that nothing is kept for": {
			func(_ *Prediction, gpu *executor.GPUResult) { gpu.FenceHigh = 1430 * mebibyte }, Fail, "30.0 MiB more than",
		},
		"kept beside the page tables that came": {
			func(_ *Prediction, gpu *executor.GPUResult) { gpu.After, gpu.TablesAfter = 648*mebibyte, 30*mebibyte }, Fail, "17.0 MiB of its arenas were not given back",
		},
		"nothing told": {
			func(_ *Prediction, gpu *executor.GPUResult) { gpu.Unmeasured = "no NVML" }, Inconclusive, "GPU 3 (H100): what it held is not known: no NVML",
		},
		"planned for two GPUs": {
			func(prediction *Prediction, gpu *executor.GPUResult) {
				prediction.GPUs[1] = "GPU-c"
				gpu.FenceLow, gpu.FenceHigh = 1150*mebibyte, 1150*mebibyte
			}, Pass, "(with one context in place of 2)",
		},
		"planned for GPUs that nobody measured": {
			func(prediction *Prediction, _ *executor.GPUResult) { prediction.GPUs = nil }, Inconclusive, "devmap probe does",
		},
		"that, and as foretold": {
			func(prediction *Prediction, gpu *executor.GPUResult) {
				prediction.GPUs = nil
				gpu.FenceLow, gpu.FenceHigh = 1150*mebibyte, 1150*mebibyte
			}, Pass, "to the byte",
		},
		"an arena that is kept": {
			func(_ *Prediction, gpu *executor.GPUResult) { gpu.After = 903 * mebibyte }, Fail, "302.0 MiB of its arenas were not given back",
		},
	} {
		prediction, job, result := onOne()
		is.change(prediction, &result.GPUs[0])
		made := Of(prediction, job, result)
		if made.Verdict != is.verdict || !strings.Contains(strings.Join(made.Reasons, "\n"), is.reason) {
			t.Errorf("%s: %s, because\n%s\nwant %s, because\n%s", name, made.Verdict, strings.Join(made.Reasons, "\n"), is.verdict, is.reason)
		}
	}
}

// TestFaultRemains: what is known to be wrong is not made less by what is not known.
func TestFaultRemains(t *testing.T) {
	t.Parallel()
	prediction, job, result := onOne()
	result.GPUs[0].Moved, result.Devices[0].Stray = "process 7 came", 1
	if made := Of(prediction, job, result); made.Verdict != Fail {
		t.Error(made.Verdict)
	}
}

// TestAlone: a device that has a GPU alone reports what that used.
func TestAlone(t *testing.T) {
	t.Parallel()
	prediction, job, result := onOne()
	if made := Of(prediction, job, result); made.Devices[0].Measured.DeviceUsedBytes != nil {
		t.Errorf("%d bytes of one of two", *made.Devices[0].Measured.DeviceUsedBytes)
	}
	result.GPUs[0].Devices = []int32{1}
	made := Of(prediction, job, result)
	if used := made.Devices[1].Measured.DeviceUsedBytes; used == nil || *used != 1301*mebibyte || made.Devices[0].Measured.DeviceUsedBytes != nil {
		t.Errorf("%+v", made.Devices)
	}
}
