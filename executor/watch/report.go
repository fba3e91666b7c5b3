package watch

import (
	"fmt"
	"iter"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/report"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Report is devmap.report/v1 of a watched command. Fields that a run's report has too have the same
// names. Bytes; null: not known.
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
	// Processes are the command's processes in which torch reported its memory.
	Processes []Process `json:"processes"`
	// Explained explains the difference of each device that has its GPU alone.
	Explained []Explanation  `json:"explained"`
	Verdict   report.Verdict `json:"verdict"`
	Reasons   []string       `json:"reasons"` // of the verdict, a sentence each
	Notes     []string       `json:"notes"`   // what does not change the verdict
}

// Command is what was watched, and how it ended.
type Command struct {
	Argv       []string `json:"argv"` // as it was called
	PID        int      `json:"pid"`
	Seconds    float64  `json:"seconds"`     // while it was watched
	ExitStatus *int     `json:"exit_status"` // as in a shell, 128 + n after signal n; null: not known
	Ended      string   `json:"ended"`       // in the system's words; empty: it still runs
}

// Device is the prediction and the measurement of a device. Measured figures are its GPU's; null if
// the GPU has other devices too.
type Device struct {
	Device    int                 `json:"device"`
	Predicted devicemap.Predicted `json:"predicted"`
	Measured  struct {
		// The allocator's own peaks, allocated and reserved.
		PeakAllocatedBytes *int64 `json:"peak_allocated_bytes"`
		PeakReservedBytes  *int64 `json:"peak_reserved_bytes"`
		// PeakAllocatedRange is the range of the allocated peak if several processes had memory at
		// once. PeakAllocatedBytes is then its upper end.
		PeakAllocatedRange []int64 `json:"peak_allocated_range_bytes,omitzero"`
		// DeviceUsedBytes is the command's most in one reading.
		DeviceUsedBytes *int64 `json:"device_used_bytes"`
	} `json:"measured"`
	// Ratio is measured over predicted: of the allocated peak, or of used memory if only that is
	// known.
	Ratio *float64 `json:"ratio"`
}

// GPUReport is a GPU of the plan.
type GPUReport struct {
	GPU           int    `json:"gpu"` // the command's number for it
	UUID          string `json:"uuid"`
	Name          string `json:"name"`
	Devices       []int  `json:"devices"`
	CapacityBytes int64  `json:"capacity_bytes"`
	// PredictedUsedBytes are the least and the most that its devices should use: peaks, overhead,
	// and the allocator's slack.
	PredictedUsedBytes [2]int64 `json:"predicted_used_bytes"`
	BeforeBytes        int64    `json:"before_bytes"` // not the command's
	PeakUsedBytes      int64    `json:"peak_used_bytes"`
	Growth             Growth   `json:"growth"`
	// Processes is the most of the command's processes at once; null if the driver shows none of
	// them.
	Processes *int `json:"processes"`
	// Others says which memory of other processes is known to have changed; empty: none.
	Others string `json:"others"`

	allocated [2]int64 // the least and the most that are predicted
	torch     *OnGPU
}

// Ran is the input of a report.
type Ran struct {
	File    string          // the plan's
	Plan    *devicemap.Plan // nil: measured, and compared with nothing
	Sampler *Sampler
	Command *Command // nil: none was named
	// Processes are the reports of torch in the command's processes.
	Processes []Process
	// Variants is called if a prediction did not hold; nil: there are none.
	Variants func() (iter.Seq[Variant], error)
	Notes    []string
}

// Of only reads its input. It returns the report of what was watched.
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

// unplanned returns a plan with the devices of the GPUs that predicts nothing.
func unplanned(states []GPUState) *devicemap.Plan {
	plan := &devicemap.Plan{}
	for i := range states {
		for _, device := range states[i].Devices {
			plan.Devices = append(plan.Devices, devicemap.Prediction{Device: device})
		}
	}
	return plan
}

// outlived lists processes that are still on GPUs after the command has ended.
func (result *Report) outlived(states []GPUState) (all []string) {
	for i := range states {
		if state := &states[i]; result.Command != nil && result.Command.Ended != "" && state.Processes > 0 && state.CommandBytes > 0 {
			all = append(all, fmt.Sprintf("the command has ended, and processes of it are on GPU %d still: %d, with %v", state.Number, state.Processes, costmodel.Bytes(state.CommandBytes)))
		}
	}
	return all
}

// measured returns the measurements of the devices that have their GPU alone.
func (result *Report) measured() (all []Measured) {
	for i := range result.GPUs {
		gpu := &result.GPUs[i]
		if len(gpu.Devices) == 1 {
			all = append(all, Measured{Device: gpu.Devices[0], Torch: gpu.torch, Used: &gpu.PeakUsedBytes, Interval: result.Sampling.Interval(), OfDevice: gpu.Processes == nil || gpu.Others != ""})
		}
	}
	return all
}

// torchOn returns what torch reported of a GPU; nil: it had no memory there.
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

// Predicted returns the least and the most bytes that devices should use together on one GPU.
// allocated is the part of these that their allocator has allocated at its peak.
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

// imbalance returns the largest peak over the mean of all GPUs: of allocated memory if that is
// known on all, else of used memory. It is nil if no memory was used.
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
