// Package report compares what a run measured with what its plan predicted. It judges the bytes in
// the arenas, and those of the process or of each GPU. It reports times without judging them.
package report

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// version is the format's.
const version = "devmap.report/v1"

// Report is devmap.report/v1. Bytes count from the beginning of a device's arena. Seconds are
// measured on this machine.
type Report struct {
	FormatVersion string `json:"format_version"`
	Plan          string `json:"plan"` // the file
	Model         struct {
		Name   string `json:"name"`
		Digest string `json:"digest"`
	} `json:"model"`
	Backend   string   `json:"backend"`
	Turn      *Turn    `json:"turn,omitzero"` // missing if the plan has one turn alone
	Devices   []Device `json:"devices"`
	GPUs      []GPU    `json:"gpus,omitzero"` // none if arenas are in a processor's memory
	Imbalance struct {
		Predicted float64 `json:"predicted"`
		Measured  float64 `json:"measured"`
	} `json:"imbalance"`
	// Loading is missing if arenas are in a processor's memory.
	Loading *Loading `json:"loading,omitzero"`
	Steps   []Step   `json:"steps"`
	// StepSeconds are null if no step runs.
	StepSeconds struct {
		Predicted *float64 `json:"predicted"`
		Measured  *float64 `json:"measured"`
	} `json:"step_seconds"`
	// FirstTokenSeconds is the time from a step's beginning to the first tokens of all its sequences,
	// the median without the first step; missing if nothing is generated.
	FirstTokenSeconds float64 `json:"first_token_seconds,omitzero"`
	// TokensPerSecond is null if no step ran.
	TokensPerSecond *float64  `json:"tokens_per_second"`
	Tokens          [][]int32 `json:"tokens"` // generated ids, a list a sequence
	// Scalars is a fingerprint of the constants of the model's layers, which its digest leaves out.
	Scalars string `json:"scalars"`
	Links   []Link `json:"links"` // none if messages are copies in one memory
	// Topology is the plan's, with the measured ratios of a training on GPUs.
	Topology *costmodel.Topology `json:"topology,omitzero"`
	Verdict  Verdict             `json:"verdict"`
	Reasons  []string            `json:"reasons"` // of the verdict, a sentence each
}

// Device is the prediction and the measurement of a device.
type Device struct {
	Device    int                 `json:"device"`
	Predicted devicemap.Predicted `json:"predicted"`
	Measured  struct {
		// PeakAllocatedBytes is the end of the highest byte that was written.
		PeakAllocatedBytes int64 `json:"peak_allocated_bytes"`
		// DeviceUsedBytes is its GPU's ([GPU]); null if the GPU has other devices too, or there is
		// none.
		DeviceUsedBytes *int64 `json:"device_used_bytes"`
	} `json:"measured"`
	// Ratio is the measured peak over the predicted one; null if none was predicted.
	Ratio   *float64 `json:"ratio"`
	Regions []Region `json:"regions"`
	// Unwritten are the bytes of buffers that nothing ever wrote.
	Unwritten []Unwritten `json:"unwritten"`

	stray int64 // bytes that were written and lie in no buffer
}

// Region is a part of an arena. TouchedBytes is the end of its highest byte that was written.
type Region struct {
	Name         string `json:"name"`
	PlannedBytes int64  `json:"planned_bytes"`
	TouchedBytes int64  `json:"touched_bytes"`
}

// Unwritten is bytes of a buffer that nothing wrote, and why.
type Unwritten struct {
	Buffer string `json:"buffer"`
	Bytes  int64  `json:"bytes"`
	Why    string `json:"why"`

	missed bool // values belong there
}

// Loading is how values came from files, or from a seed, into GPUs' arenas. It covers all devices
// together, without what was set to zero.
type Loading struct {
	Bytes          int64   `json:"bytes"`
	Seconds        float64 `json:"seconds"`
	BytesPerSecond float64 `json:"bytes_per_second"`
	// DiskBytes of Bytes were in no page cache. They came from a disk at DiskBytesPerSecond.
	DiskBytes          int64   `json:"disk_bytes,omitzero"`
	DiskBytesPerSecond float64 `json:"disk_bytes_per_second,omitzero"`
}

// Turn is one of the times that a plan has its GPUs. StartSeconds are from the beginning of the
// turn to its first step, EndSeconds from after its last step to the release of the arenas.
type Turn struct {
	Cycle int64 `json:"cycle"` // from 1
	Of    int64 `json:"of"`
	// Start is "loaded" or "woken". MapSeconds of StartSeconds passed until arenas were mapped and
	// everything was prepared, CopySeconds after that, with StartBytes of values.
	Start        string  `json:"start"`
	StartBytes   int64   `json:"start_bytes"`
	StartSeconds float64 `json:"start_seconds"`
	MapSeconds   float64 `json:"map_seconds"`
	CopySeconds  float64 `json:"copy_seconds"`
	// End is "closed", or "asleep" with EndBytes of changed values copied, or "broken off".
	End        string  `json:"end"`
	EndBytes   int64   `json:"end_bytes"`
	EndSeconds float64 `json:"end_seconds"`
}

// turnOf returns the turn of a result; nil if it is the only one.
func turnOf(prediction *Prediction, result *executor.Result) *Turn {
	if prediction.Of == 0 {
		return nil
	}
	took := &result.Turn
	turn := &Turn{
		Cycle: prediction.Cycle, Of: prediction.Of,
		Start: "loaded", StartBytes: took.Start.Bytes, StartSeconds: took.Start.Seconds, MapSeconds: took.MapSeconds, CopySeconds: took.CopySeconds,
		End: "closed", EndBytes: took.End.Bytes, EndSeconds: took.End.Seconds,
	}
	if took.Woken {
		turn.Start = "woken"
	}
	if took.Asleep {
		turn.End = "asleep"
	}
	return turn
}

// Step is a step: its loss before the update, null without training, and the times of each device.
type Step struct {
	Step    int64        `json:"step"` // from 1, with those before a resume
	Loss    *float64     `json:"loss"`
	Seconds float64      `json:"seconds"`
	Devices []DeviceTime `json:"devices"`
}

// DeviceTime is how a device spent a step, in seconds.
type DeviceTime struct {
	Device   int     `json:"device"`
	Forward  float64 `json:"forward_seconds"`
	Backward float64 `json:"backward_seconds"` // with recompute and Weights
	Weights  float64 `json:"weights_seconds,omitzero"`
	Decode   float64 `json:"decode_seconds"`
	Update   float64 `json:"update_seconds"`
	Wait     float64 `json:"wait_seconds"`
}

// Prediction is what a plan predicts for the run.
type Prediction struct {
	Plan      string                 // the file
	Devices   []devicemap.Prediction // by device
	Imbalance float64
	// GPUs are the UUIDs of the GPUs that devices are planned on, by device, except GPUs that we
	// have not measured ([costmodel.Device]).
	GPUs map[int32]string
	// Cycle is the number of the plan's turn, from 1, of so many; Of is 0 if it is the only one.
	// Woken: the plan slept before it.
	Cycle, Of int64
	Woken     bool
	// StepSeconds is nil if no step runs.
	StepSeconds *float64
	// Topology has the rates that the prediction rests on; nil: the report gets none.
	Topology *costmodel.Topology
}

// Of must get the result of the same job. It returns the report of the run.
func Of(prediction *Prediction, job *executor.Job, result *executor.Result) *Report {
	report := newReport(prediction, job, result)
	for i := range result.Links {
		report.Links = append(report.Links, linkOf(&result.Links[i]))
	}
	report.Imbalance.Measured = imbalance(report.Devices)
	if loading := result.Loading; loading != nil {
		report.Loading = &Loading{Bytes: loading.Bytes, Seconds: loading.Seconds, BytesPerSecond: float64(loading.Bytes) / loading.Seconds}
		if loading.DiskBytes > 0 {
			report.Loading.DiskBytes, report.Loading.DiskBytesPerSecond = loading.DiskBytes, float64(loading.DiskBytes)/loading.DiskSeconds
		}
	}
	for i := range result.Steps {
		report.Steps = append(report.Steps, StepOf(&result.Steps[i], job))
	}
	if len(result.Steps) > 0 {
		report.StepSeconds.Measured, report.TokensPerSecond = &result.StepSeconds, &result.TokensPerSecond
		report.FirstTokenSeconds = result.FirstTokenSeconds
	}
	report.Topology = measuredRates(prediction.Topology, job, report.Steps, len(result.GPUs) > 0)
	report.judge(job, result)
	return report
}

// newReport returns the parts of a report that all runs have: the predictions, the backend, and the
// measurements of the devices.
func newReport(prediction *Prediction, job *executor.Job, result *executor.Result) *Report {
	report := &Report{
		FormatVersion: version, Plan: prediction.Plan, Backend: result.Backend, Scalars: job.Graph.Scalars(),
		Tokens: result.Tokens, Turn: turnOf(prediction, result),
	}
	report.Imbalance.Predicted, report.StepSeconds.Predicted = prediction.Imbalance, prediction.StepSeconds
	report.Model.Name, report.Model.Digest = job.Graph.Name, job.Program.Plan
	for i := range prediction.Devices {
		report.Devices = append(report.Devices, deviceOf(&prediction.Devices[i], result))
	}
	for i := range result.GPUs {
		report.addGPU(prediction, &result.GPUs[i])
	}
	return report
}
