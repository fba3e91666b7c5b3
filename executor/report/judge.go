package report

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
)

// Verdict is the result of comparing measured with planned bytes.
type Verdict string

// The verdicts.
const (
	Pass         Verdict = "pass"
	Fail         Verdict = "fail"
	Inconclusive Verdict = "inconclusive" // something could not be measured
)

// workspace is the region of libraries; a processor's backend has none.
const workspace = "workspace"

// judge compares what was measured with what was planned. Every byte of an arena has its place in
// the plan. So a region that was not written to its end is as wrong as one that was written beyond.
// In both cases the plan does not describe what ran.
func (report *Report) judge(job *executor.Job, result *executor.Result) {
	report.Verdict = Pass
	var failed []string
	for i := range report.Devices {
		failed = append(failed, report.Devices[i].faults(result.Stopped)...)
	}
	if len(failed) == 0 {
		report.because("%s", reached(result.Stopped))
	}
	for _, fault := range failed {
		report.Verdict = Fail
		report.because("%s", fault)
	}
	if len(report.GPUs) > 0 {
		report.judgeGPUs() // the process holds no arena
		return
	}
	report.judgeGrowth(job, result.Growth)
}

func (report *Report) because(format string, args ...any) {
	report.Reasons = append(report.Reasons, fmt.Sprintf(format, args...))
}

// faults are the differences between a device's arena and its plan.
func (device *Device) faults(stopped bool) []string {
	var faults []string
	peak, planned := device.Measured.PeakAllocatedBytes, device.Predicted.PeakAllocatedBytes
	if peak > planned {
		faults = append(faults, fmt.Sprintf("device %d: its peak is %d bytes, %d more than the plan's", device.Device, peak, peak-planned))
	}
	for _, region := range device.Regions {
		short := region.PlannedBytes - region.TouchedBytes
		switch {
		case short < 0:
			faults = append(faults, fmt.Sprintf("device %d: region %s was written %s beyond its end at %d", device.Device, region.Name, counted(-short), region.PlannedBytes))
		case short > 0 && region.Name != workspace && !stopped:
			faults = append(faults, fmt.Sprintf("device %d: the last %d of the %d bytes of region %s were never written", device.Device, short, region.PlannedBytes, region.Name))
		}
	}
	if device.stray > 0 {
		faults = append(faults, fmt.Sprintf("device %d: %s written outside of all buffers", device.Device, counted(device.stray)))
	}
	for _, gap := range device.Unwritten {
		if gap.missed && !stopped {
			faults = append(faults, fmt.Sprintf("device %d: %s of buffer %s never written: %s", device.Device, counted(gap.Bytes), gap.Buffer, gap.Why))
		}
	}
	if len(faults) == 0 && peak < planned && !stopped { // the program is right, the plan is for another one
		faults = append(faults, fmt.Sprintf("device %d: its peak is %d bytes, %d less than the plan's", device.Device, peak, planned-peak))
	}
	return faults
}

// How much a process may grow beyond its arenas and the host memory of its plan: the larger of these.
const (
	growthBytes = 64 << 20
	growthShare = 10 // a tenth of the arenas
)

// judgeGrowth compares the growth of the process with the sum of its arenas and of its plan's host
// memory.
func (report *Report) judgeGrowth(job *executor.Job, growth int64) {
	if growth < 0 {
		if report.Verdict == Pass {
			report.Verdict = Inconclusive
		}
		report.because("the growth of the process is unknown: this system does not report it")
		return
	}
	var arenas, host int64
	for i := range job.Program.Devices {
		arenas += job.Program.Devices[i].Arena
		host += job.Program.HostBytes(i)
	}
	more := max(growthBytes, arenas/growthShare)
	bound, hosted := "limit", ""
	if growth > arenas+host+more {
		report.Verdict, bound = Fail, "above the limit of"
	}
	if host > 0 {
		hosted = fmt.Sprintf(", %v of host memory", costmodel.Bytes(host))
	}
	report.because("the process grew %v (%s %v: %v of arenas%s and %v)", costmodel.Bytes(growth), bound, costmodel.Bytes(arenas+host+more), costmodel.Bytes(arenas), hosted, costmodel.Bytes(more))
}

func reached(stopped bool) string {
	if stopped {
		return "nothing was written outside the planned memory; some of it was not used, because every sequence reached a stop id"
	}
	return "all planned memory was used, nothing outside it"
}

func counted(bytes int64) string {
	if bytes == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", bytes)
}
