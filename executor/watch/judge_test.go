package watch

import (
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/executor/report"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// readGPU is a GPU whose memory was read, with its prediction.
func readGPU(peak int64, predicted [2]int64) GPUReport {
	return GPUReport{Name: "H200", PredictedUsedBytes: predicted, PeakUsedBytes: peak}
}

// torchGPU is a GPU whose allocator reported its peak.
func torchGPU(peak int64, predicted [2]int64) GPUReport {
	return GPUReport{Name: "H200", allocated: predicted, torch: &OnGPU{Processes: 1, Allocated: Peak{peak, peak}}}
}

// TestVerdictLimits: a hundredth of the end of the prediction that the peak is
// near, or 2 MiB, is not judged. The allocator's peak is exact, so that its limit
// is a hundredth of the larger end on both sides.
func TestVerdictLimits(t *testing.T) {
	t.Parallel()
	const gib = int64(1 << 30)
	wide, small := [2]int64{100 * gib, 1000 * gib}, [2]int64{100 * mib, 100 * mib}
	exited := 0
	for name, test := range map[string]struct {
		gpu  GPUReport
		want report.Verdict
		why  string
	}{
		"read, a hundredth less":            {readGPU(99*gib, wide), report.Pass, ""},
		"read, a byte below that":           {readGPU(99*gib-1, wide), report.Inconclusive, ": 1.00 GiB less, which"},
		"read, a hundredth more":            {readGPU(1010*gib, wide), report.Pass, ""},
		"read, a byte above that":           {readGPU(1010*gib+1, wide), report.Fail, ": 10.00 GiB more"},
		"read, 2 MiB more":                  {readGPU(102*mib, small), report.Pass, ""},
		"read, a byte above 2 MiB":          {readGPU(102*mib+1, small), report.Fail, ": 2.0 MiB more"},
		"read, 2 MiB less":                  {readGPU(98*mib, small), report.Pass, ""},
		"read, a byte below 2 MiB":          {readGPU(98*mib-1, small), report.Inconclusive, ": 2.0 MiB less"},
		"allocated, a hundredth less":       {torchGPU(90*gib, wide), report.Pass, ""},
		"allocated, a byte below that":      {torchGPU(90*gib-1, wide), report.Fail, ": 10.00 GiB less"},
		"allocated, a byte above 2 MiB":     {torchGPU(102*mib+1, small), report.Fail, ": 2.0 MiB more"},
		"allocated, a hundredth of the top": {torchGPU(1010*gib, wide), report.Pass, ""},
	} {
		result := &Report{Command: &Command{ExitStatus: &exited}, GPUs: []GPUReport{test.gpu}}
		result.judge()
		if reasons := strings.Join(result.Reasons, "; "); result.Verdict != test.want || !strings.Contains(reasons, test.why) {
			t.Errorf("%s: %s: %s; want %s%s", name, result.Verdict, reasons, test.want, test.why)
		}
	}
}

// TestVerdictOrder: one failure fails the report, whatever the other GPUs and the
// readings are; without a failure, lost readings leave a pass inconclusive.
func TestVerdictOrder(t *testing.T) {
	t.Parallel()
	predicted := [2]int64{1000 * mib, 1000 * mib}
	pass, more, less := readGPU(1000*mib, predicted), readGPU(2000*mib, predicted), readGPU(500*mib, predicted)
	for name, test := range map[string]struct {
		gpus []GPUReport
		lost string
		want report.Verdict
	}{
		"inconclusive after fail":  {[]GPUReport{more, less}, "", report.Fail},
		"fail after inconclusive":  {[]GPUReport{less, more}, "", report.Fail},
		"pass after fail":          {[]GPUReport{more, pass}, "", report.Fail},
		"pass after inconclusive":  {[]GPUReport{less, pass}, "", report.Inconclusive},
		"pass":                     {[]GPUReport{pass, pass}, "", report.Pass},
		"pass, readings lost":      {[]GPUReport{pass, pass}, "driver closed", report.Inconclusive},
		"fail, then readings lost": {[]GPUReport{more, pass}, "driver closed", report.Fail},
	} {
		result := &Report{Command: new(Command), GPUs: test.gpus, Sampling: Sampling{Lost: test.lost}}
		result.judge()
		if result.Verdict != test.want {
			t.Errorf("%s: %s, want %s: %q", name, result.Verdict, test.want, result.Reasons)
		}
		if last := result.Reasons[len(result.Reasons)-1]; test.lost != "" && last != "readings ended early: driver closed" {
			t.Errorf("%s: the last reason is %q", name, last)
		}
	}
}

// TestPredicted: the least of a GPU has the devices' lower peaks and the least of
// the allocator's slack, the most has the upper ones.
func TestPredicted(t *testing.T) {
	t.Parallel()
	plan := &devicemap.Plan{Devices: []devicemap.Prediction{
		{Device: 0, Predicted: devicemap.Predicted{PeakAllocatedBytes: 1000, OverheadBytes: 100, SlackBytes: [2]int64{10, 30}}},
		{Device: 1, Predicted: devicemap.Predicted{PeakAllocatedBytes: 2000, PeakRangeBytes: []int64{1500, 2000}, OverheadBytes: 200, SlackBytes: [2]int64{1, 2}}},
		{Device: 2, Predicted: devicemap.Predicted{PeakAllocatedBytes: 9000}},
	}}
	used, allocated := Predicted(plan, []int{0, 1})
	if used != [2]int64{2811, 3332} || allocated != [2]int64{2500, 3000} {
		t.Errorf("used %d, allocated %d", used, allocated)
	}
}
