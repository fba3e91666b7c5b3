package watch

import (
	"fmt"
	"iter"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/report"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Report is devmap.report/v1 of a command that was watched. What it has in common
// with that of a run has the same names. Bytes; null: not known.
type Report struct {
	FormatVersion string `json:"format_version"`
	Plan          string `json:"plan"` // the file
	Model         struct {
		Name   string `json:"name"`
		Digest string `json:"digest"`
	} `json:"model"`
	Backend   string      `json:"backend"` // watch
	Command   *Command    `json:"command"` // null: none was named
	Sampling  Sampling    `json:"sampling"`
	Devices   []Device    `json:"devices"`
	GPUs      []GPUReport `json:"gpus"`
	Imbalance struct {
		Predicted float64  `json:"predicted"`
		Measured  *float64 `json:"measured"`
	} `json:"imbalance"`
	// Processes are those of the command in which torch reported its memory.
	Processes []Process `json:"processes"`
	// Explained is where each device's difference lies, that has its GPU alone.
	Explained []Explanation  `json:"explained"`
	Verdict   report.Verdict `json:"verdict"`
	Reasons   []string       `json:"reasons"` // of the verdict, a sentence each
	Notes     []string       `json:"notes"`   // what the verdict does not rest on
}

// Command is what was watched, and how it ended.
type Command struct {
	Argv       []string `json:"argv"` // as it was called
	PID        int      `json:"pid"`
	Seconds    float64  `json:"seconds"`     // while it was watched
	ExitStatus *int     `json:"exit_status"` // as a shell has it: 128 + n by signal n; null: not known
	Ended      string   `json:"ended"`       // in the system's words; empty: it runs on
}

// Device is what was predicted of a device and what became of it. Measured figures
// are its GPU's; null where that has other devices too.
type Device struct {
	Device    int                 `json:"device"`
	Predicted devicemap.Predicted `json:"predicted"`
	Measured  struct {
		// The allocator's own most, allocated and reserved.
		PeakAllocatedBytes *int64 `json:"peak_allocated_bytes"`
		PeakReservedBytes  *int64 `json:"peak_reserved_bytes"`
		// PeakAllocatedRange is between what the first of these may lie, where
		// several processes had memory at once: it is the most then.
		PeakAllocatedRange []int64 `json:"peak_allocated_range_bytes,omitzero"`
		// DeviceUsedBytes is the most of the command's in one reading.
		DeviceUsedBytes *int64 `json:"device_used_bytes"`
	} `json:"measured"`
	// Ratio is measured over predicted: of the allocated peak, or of what is used
	// where only that is known.
	Ratio *float64 `json:"ratio"`
}

// GPUReport is a GPU of the plan.
type GPUReport struct {
	GPU           int    `json:"gpu"` // the command's number for it
	UUID          string `json:"uuid"`
	Name          string `json:"name"`
	Devices       []int  `json:"devices"`
	CapacityBytes int64  `json:"capacity_bytes"`
	// PredictedUsedBytes are the least and the most that its devices are to hold of
	// it: peaks, overhead, and the allocator's slack.
	PredictedUsedBytes [2]int64 `json:"predicted_used_bytes"`
	BeforeBytes        int64    `json:"before_bytes"` // not the command's
	PeakUsedBytes      int64    `json:"peak_used_bytes"`
	Growth             Growth   `json:"growth"`
	// Processes is how many of the command's were there at once at most; null where
	// the driver shows none of them.
	Processes *int `json:"processes"`
	// Others is what is known to have moved of other processes; empty: nothing.
	Others string `json:"others"`

	allocated [2]int64 // the least and the most that are predicted
	torch     *OnGPU
}

// Ran is what there is to report of.
type Ran struct {
	File    string          // the plan's
	Plan    *devicemap.Plan // nil: measured, and compared with nothing
	Sampler *Sampler
	Command *Command // nil: none was named
	// Processes is what torch reported in those of the command.
	Processes []Process
	// Variants are asked for where a prediction did not hold; nil: there are none.
	Variants func() (iter.Seq[Variant], error)
	Notes    []string
}

// Of is the report of what was watched.
func Of(ran *Ran) *Report {
	plan, states := ran.Plan, ran.Sampler.State()
	if plan == nil {
		plan = unplanned(states)
	}
	result := &Report{FormatVersion: "devmap.report/v1", Plan: ran.File, Backend: "watch", Command: ran.Command, Sampling: ran.Sampler.Sampling(), Processes: ran.Processes, Notes: ran.Notes}
	result.Model.Name, result.Model.Digest = plan.Model.Name, plan.Model.Digest
	result.Imbalance.Predicted = plan.Imbalance
	torch := Together(ran.Processes)
	for i := range states {
		gpu := gpuReport(plan, &states[i])
		gpu.torch = torchOn(torch, &gpu)
		result.GPUs = append(result.GPUs, gpu)
	}
	for i := range plan.Devices {
		result.Devices = append(result.Devices, result.device(&plan.Devices[i]))
	}
	result.Imbalance.Measured = result.imbalance()
	if result.Command != nil && ran.Plan != nil {
		result.Explained = Explain(plan, result.measured(), ran.Variants)
	}
	if ran.Plan == nil {
		result.Notes = slices.Concat(result.Notes, ran.Sampler.Stray(), result.outlived(states))
		result.measure()
		return result
	}
	result.Notes = slices.Concat(result.Notes, result.buildUp(), ran.Sampler.Stray(), result.outlived(states))
	result.judge()
	return result
}

// unplanned has the devices of GPUs and predicts nothing.
func unplanned(states []GPUState) *devicemap.Plan {
	plan := &devicemap.Plan{}
	for i := range states {
		for _, device := range states[i].Devices {
			plan.Devices = append(plan.Devices, devicemap.Prediction{Device: device})
		}
	}
	return plan
}

// outlived tells of processes that are on GPUs still though the command has ended.
func (result *Report) outlived(states []GPUState) (all []string) {
	for i := range states {
		if state := &states[i]; result.Command != nil && result.Command.Ended != "" && state.Processes > 0 && state.CommandBytes > 0 {
			all = append(all, fmt.Sprintf("the command has ended, and processes of it are on GPU %d still: %d, with %v", state.Number, state.Processes, costmodel.Bytes(state.CommandBytes)))
		}
	}
	return all
}

// measured is what was measured of the devices that have their GPU alone.
func (result *Report) measured() (all []Measured) {
	for i := range result.GPUs {
		gpu := &result.GPUs[i]
		if len(gpu.Devices) == 1 {
			all = append(all, Measured{Device: gpu.Devices[0], Torch: gpu.torch, Used: &gpu.PeakUsedBytes, Interval: result.Sampling.Interval(), OfDevice: gpu.Processes == nil || gpu.Others != ""})
		}
	}
	return all
}

// torchOn is what torch reported of a GPU that it had memory of; nil: nothing.
func torchOn(torch map[string]OnGPU, gpu *GPUReport) *OnGPU {
	on, found := torch[gpu.UUID]
	if !found {
		on, found = torch[fmt.Sprintf("cuda:%d", gpu.GPU)]
	}
	if !found || on.Processes == 0 && on.OutOfMemory == 0 {
		return nil
	}
	return &on
}

// gpuReport compares what was read of a GPU with the predictions of its devices.
func gpuReport(plan *devicemap.Plan, state *GPUState) GPUReport {
	gpu := GPUReport{
		GPU: state.Number, UUID: state.UUID, Name: state.Name, Devices: state.Devices, CapacityBytes: state.Total,
		BeforeBytes: state.BeforeBytes, PeakUsedBytes: state.PeakBytes, Growth: state.Growth, Others: state.Others,
	}
	if state.Shown {
		gpu.Processes = &state.Most
	}
	gpu.PredictedUsedBytes, gpu.allocated = Predicted(plan, state.Devices)
	return gpu
}

// Predicted are the least and the most bytes that devices are to hold together of one
// GPU, and of these what their allocator gives out at its peak.
func Predicted(plan *devicemap.Plan, devices []int) (used, allocated [2]int64) {
	for i := range plan.Devices {
		if !slices.Contains(devices, plan.Devices[i].Device) {
			continue
		}
		predicted := &plan.Devices[i].Predicted
		peaks := [2]int64{predicted.PeakAllocatedBytes, predicted.PeakAllocatedBytes}
		if len(predicted.PeakRangeBytes) == len(peaks) {
			peaks = [2]int64(predicted.PeakRangeBytes)
		}
		for j := range peaks {
			allocated[j] += peaks[j]
			used[j] += peaks[j] + predicted.OverheadBytes + predicted.SlackBytes[j]
		}
	}
	return used, allocated
}

// device compares what was measured of a device's GPU with its prediction.
func (result *Report) device(planned *devicemap.Prediction) Device {
	device := Device{Device: planned.Device, Predicted: planned.Predicted}
	at := slices.IndexFunc(result.GPUs, func(gpu GPUReport) bool { return slices.Contains(gpu.Devices, planned.Device) })
	if at < 0 || len(result.GPUs[at].Devices) > 1 {
		return device
	}
	gpu := &result.GPUs[at]
	device.Measured.DeviceUsedBytes = &gpu.PeakUsedBytes
	measured, planPeak := gpu.PeakUsedBytes, planned.Predicted.DeviceUsedBytes
	if torch := gpu.torch; torch != nil {
		device.Measured.PeakAllocatedBytes, device.Measured.PeakReservedBytes = &torch.Allocated.High, &torch.Reserved.High
		if torch.Allocated.Low != torch.Allocated.High {
			device.Measured.PeakAllocatedRange = []int64{torch.Allocated.Low, torch.Allocated.High}
		}
		measured, planPeak = torch.Allocated.High, planned.Predicted.PeakAllocatedBytes
	}
	if planPeak > 0 {
		ratio := float64(measured) / float64(planPeak)
		device.Ratio = &ratio
	}
	return device
}

// imbalance is the largest peak over the mean of all GPUs: of what was allocated
// where that is known of all, else of what was used.
func (result *Report) imbalance() *float64 {
	exact := !slices.ContainsFunc(result.GPUs, func(gpu GPUReport) bool { return gpu.torch == nil })
	var most, sum int64
	for i := range result.GPUs {
		peak := result.GPUs[i].PeakUsedBytes
		if exact {
			peak = result.GPUs[i].torch.Allocated.High
		}
		most, sum = max(most, peak), sum+peak
	}
	if sum == 0 {
		return nil
	}
	imbalance := float64(most) * float64(len(result.GPUs)) / float64(sum)
	return &imbalance
}
