package report

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// GPU is the predicted and the measured memory of a GPU. Bytes are of all processes, at moments of
// the run.
type GPU struct {
	GPU     int    `json:"gpu"` // by the driver's order
	UUID    string `json:"uuid"`
	Name    string `json:"name"`
	Devices []int  `json:"devices"` // devices of the plan that are on it
	// PredictedUsedBytes is the sum of device_used_bytes of its devices. Devices that were planned
	// as GPUs of their own share one context, which is counted once. The sum has the page tables of
	// copies that are kept in host memory, 8 bytes for each 4 KiB.
	PredictedUsedBytes int64 `json:"predicted_used_bytes"`
	// DeviceUsedBytes is the process's memory at the fence with the largest difference from the
	// prediction; if no fence was passed, when everything was ready. It is null if the driver
	// reported nothing, as is Measured.
	DeviceUsedBytes *int64     `json:"device_used_bytes"`
	Measured        *GPUMemory `json:"measured"`
	// Others says which memory of other processes is known to have changed; empty: none.
	Others string `json:"others"`

	unmeasured string
	contexts   int   // how many contexts were predicted; there is one
	probed     bool  // it was planned for a measured GPU
	tables     int64 // growth of the page tables for copies in host memory since everything was ready, in bytes
}

// GPUMemory is the memory in use on a GPU, in bytes.
type GPUMemory struct {
	BeforeBytes    int64 `json:"before_bytes"`     // before the process was there
	ContextBytes   int64 `json:"context_bytes"`    // with the context
	ReadyBytes     int64 `json:"ready_bytes"`      // with arenas, kernels and libraries
	Fences         int64 `json:"fences"`           // of all steps
	FenceLowBytes  int64 `json:"fence_low_bytes"`  // the least at one
	FenceHighBytes int64 `json:"fence_high_bytes"` // the most
	AfterBytes     int64 `json:"after_bytes"`      // when arenas were released
	ArenaBytes     int64 `json:"arena_bytes"`      // mapped, in whole granules
}

// addGPU adds a GPU. A device that has it alone gets its measured memory.
func (report *Report) addGPU(prediction *Prediction, result *executor.GPUResult) {
	gpu := gpuOf(prediction, result)
	for i := range report.Devices {
		if len(gpu.Devices) == 1 && report.Devices[i].Device == gpu.Devices[0] {
			report.Devices[i].Measured.DeviceUsedBytes = gpu.DeviceUsedBytes
		}
	}
	report.GPUs = append(report.GPUs, gpu)
}

// gpuOf compares a GPU with the predictions of its devices.
func gpuOf(prediction *Prediction, result *executor.GPUResult) GPU {
	gpu := GPU{GPU: result.GPU, UUID: result.UUID, Name: result.Name, Others: result.Moved, unmeasured: result.Unmeasured, probed: true}
	contexts := make(map[string]int64) // of the GPU that each device was planned on
	for _, device := range result.Devices {
		gpu.Devices = append(gpu.Devices, int(device))
		at := slices.IndexFunc(prediction.Devices, func(one devicemap.Prediction) bool { return one.Device == int(device) })
		if at < 0 {
			continue
		}
		planned := prediction.GPUs[device]
		gpu.probed = gpu.probed && planned != ""
		if planned == "" {
			planned = fmt.Sprint(device)
		}
		predicted := &prediction.Devices[at].Predicted
		gpu.PredictedUsedBytes += predicted.DeviceUsedBytes - predicted.OverheadBytes
		contexts[planned] += predicted.OverheadBytes
	}
	var context int64
	for _, bytes := range contexts {
		context = max(context, bytes)
	}
	gpu.contexts, gpu.PredictedUsedBytes = len(contexts), gpu.PredictedUsedBytes+context+result.Tables
	gpu.tables = result.TablesAfter - result.Tables
	if result.Unmeasured == "" {
		gpu.measure(result)
	}
	return gpu
}

// measure subtracts what others had before from the memory of all.
func (gpu *GPU) measure(result *executor.GPUResult) {
	gpu.Measured = &GPUMemory{
		BeforeBytes: result.Before, ContextBytes: result.Context, ReadyBytes: result.Ready, AfterBytes: result.After,
		Fences: result.Fences, FenceLowBytes: result.FenceLow, FenceHighBytes: result.FenceHigh, ArenaBytes: result.Arenas,
	}
	used := result.Ready - result.Before
	if result.Fences > 0 {
		low, high := result.FenceLow-result.Before, result.FenceHigh-result.Before
		if used = high; gpu.PredictedUsedBytes-low > high-gpu.PredictedUsedBytes {
			used = low
		}
	}
	gpu.DeviceUsedBytes = &used
}

// How far the memory of a GPU may be from the prediction: the larger of these. The driver allocates
// in units of 2 MiB, for its own use too.
const (
	usedBytes = 16 << 20
	usedShare = 1000 // a thousandth of the prediction
)

// judge compares the process's memory on the GPU with its prediction.
func (gpu *GPU) judge() (verdict Verdict, reason string) {
	name := fmt.Sprintf("GPU %d (%s)", gpu.GPU, gpu.Name)
	if gpu.Measured == nil {
		return Inconclusive, name + ": what it held is not known: " + gpu.unmeasured
	}
	most := max(usedBytes, gpu.PredictedUsedBytes/usedShare)
	used, beyond := *gpu.DeviceUsedBytes, *gpu.DeviceUsedBytes-gpu.PredictedUsedBytes
	message := fmt.Sprintf("%s held %v%s, %s the %v that is predicted", name, costmodel.Bytes(used), atFences(gpu.Measured.Fences), differs(beyond), costmodel.Bytes(gpu.PredictedUsedBytes))
	if gpu.contexts > 1 {
		message += fmt.Sprintf(" (with one context in place of %d)", gpu.contexts)
	}
	outside := max(gpu.Measured.ReadyBytes, gpu.Measured.FenceHighBytes) - gpu.Measured.ArenaBytes + gpu.tables
	switch leaked := gpu.Measured.AfterBytes - outside; {
	case gpu.Others != "":
		return Inconclusive, message + ", while others moved: " + gpu.Others
	case max(beyond, -beyond) > most && !gpu.probed:
		return Inconclusive, fmt.Sprintf("%s, more than %v apart: it was planned for a GPU that nobody measured, devmap probe does", message, costmodel.Bytes(most))
	case max(beyond, -beyond) > most:
		return Fail, fmt.Sprintf("%s, more than %v apart", message, costmodel.Bytes(most))
	case leaked > usedBytes:
		return Fail, fmt.Sprintf("%s; %v of its arenas were not given back", message, costmodel.Bytes(leaked))
	}
	return Pass, fmt.Sprintf("%s, at most %v apart", message, costmodel.Bytes(most))
}

func atFences(count int64) string {
	switch count {
	case 0:
		return ""
	case 1:
		return " at the fence"
	}
	return fmt.Sprintf(" at each of %d fences", count)
}

func differs(bytes int64) string {
	switch {
	case bytes == 0:
		return "which is to the byte"
	case bytes < 0:
		return costmodel.Bytes(-bytes).String() + " less than"
	}
	return costmodel.Bytes(bytes).String() + " more than"
}

// judgeGPUs judges every GPU.
func (report *Report) judgeGPUs() {
	for i := range report.GPUs {
		verdict, reason := report.GPUs[i].judge()
		report.because("%s", reason)
		if verdict == Fail || verdict == Inconclusive && report.Verdict == Pass {
			report.Verdict = verdict
		}
	}
}
