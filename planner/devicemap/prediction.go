package devicemap

import (
	"math"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// Prediction is the predicted memory of one device.
type Prediction struct {
	Device        int       `json:"device"`
	CapacityBytes int64     `json:"capacity_bytes"`
	ReservedBytes int64     `json:"reserved_bytes"`
	Predicted     Predicted `json:"predicted"`
	HeadroomBytes int64     `json:"headroom_bytes"`
	Verdict       Verdict   `json:"verdict,omitzero"` // computed for older plans without the field

	// Reading a plan file computes these: the number of units on the device, its budget (capacity
	// less reserved bytes), and the used share of the budget. A share up to 1 fits.
	Units  int     `json:"-"`
	Budget int64   `json:"-"`
	Share  float64 `json:"-"`
}

// Predicted is a device's peak by category, with its overhead and slack.
type Predicted struct {
	ParamsBytes         int64    `json:"params_bytes"`
	GradsBytes          int64    `json:"grads_bytes"`
	OptimizerStateBytes int64    `json:"optimizer_state_bytes"`
	ActivationsBytes    int64    `json:"activations_bytes"`
	KVCacheBytes        int64    `json:"kv_cache_bytes"`
	WorkspaceBytes      int64    `json:"workspace_bytes"`
	CommBuffersBytes    int64    `json:"comm_buffers_bytes"`
	PeakAllocatedBytes  int64    `json:"peak_allocated_bytes"`
	OverheadBytes       int64    `json:"overhead_bytes"`
	SlackBytes          [2]int64 `json:"slack_bytes"`
	DeviceUsedBytes     int64    `json:"device_used_bytes"`
	PeakAt              string   `json:"peak_at"`
	// PeakRangeBytes are the lowest and the highest possible peak; nil: the peak is exact.
	PeakRangeBytes []int64 `json:"peak_range_bytes,omitzero"`
	// UsualPeakBytes is the peak of the usual micro-batch if samples differ; 0: it equals that of
	// the largest. All other fields describe the largest micro-batch.
	UsualPeakBytes int64 `json:"usual_peak_bytes,omitzero"`
	// HostBytes is the pinned memory of the host in which activations wait for backward.
	HostBytes int64 `json:"host_bytes,omitzero"`
	// AtLeast: the peak is a lower bound ([costmodel.Table]).
	AtLeast bool `json:"at_least,omitzero"`
}

// on returns an empty prediction of a device.
func on(index int, device *costmodel.Device) Prediction {
	return Prediction{Device: index, CapacityBytes: device.CapacityBytes, ReservedBytes: device.ReservedBytes}
}

// Serving returns the prediction of a device that serves: bytes of weights, of the cache of keys and
// values, of buffers, of the overhead beyond them, and the most that buffers may grow.
func Serving(index int, device *costmodel.Device, weights, cache, buffers, overhead, slack int64) Prediction {
	prediction := on(index, device)
	peak := weights + cache + buffers
	prediction.Predicted = Predicted{
		ParamsBytes: weights, KVCacheBytes: cache, WorkspaceBytes: buffers, PeakAllocatedBytes: peak, OverheadBytes: overhead,
		DeviceUsedBytes: peak + overhead, PeakAt: "serving", SlackBytes: [2]int64{0, slack},
	}
	prediction.settle()
	return prediction
}

// settle computes the fields that follow from the peak.
func (prediction *Prediction) settle() {
	used := prediction.Predicted.PeakAllocatedBytes + prediction.Predicted.OverheadBytes
	prediction.Budget = prediction.CapacityBytes - prediction.ReservedBytes
	prediction.HeadroomBytes = prediction.Budget - used
	prediction.Share = float64(used) / float64(prediction.Budget)
	prediction.Verdict = verdictOf(prediction.HeadroomBytes, prediction.Predicted.SlackBytes[1])
}

// pool reserves the memory that an engine never uses, if the engine preallocates a fraction of the
// device. The budget becomes pool plus overhead, and the slack is the pool's free part at the peak.
// The fraction is of CUDA's total memory. Reserved bytes do not count in that total, like the
// driver's part.
func (prediction *Prediction) pool(fraction float64) {
	if fraction == 0 {
		return
	}
	p := &prediction.Predicted
	free := prediction.CapacityBytes - prediction.ReservedBytes
	taken := min(int64(fraction*float64(free)), free-p.OverheadBytes)
	prediction.ReservedBytes = prediction.CapacityBytes - taken - p.OverheadBytes
	beyond := max(0, taken-p.PeakAllocatedBytes)
	p.SlackBytes = [2]int64{beyond, beyond}
	p.DeviceUsedBytes = p.PeakAllocatedBytes + p.OverheadBytes + beyond
}

// imbalance returns the largest allocated peak divided by the mean of all devices, idle ones
// included.
func imbalance(ps []Prediction) float64 {
	var most, sum int64
	for i := range ps {
		most = max(most, ps[i].Predicted.PeakAllocatedBytes)
		sum += ps[i].Predicted.PeakAllocatedBytes
	}
	if sum == 0 {
		return 1
	}
	return float64(most) * float64(len(ps)) / float64(sum)
}

func predicted(peak timeline.Peak, overhead int64, slack [2]float64) Predicted {
	memory := peak.Memory
	total := memory.Total()
	p := Predicted{
		ParamsBytes: memory.Params, GradsBytes: memory.Grads, OptimizerStateBytes: memory.OptimizerState,
		ActivationsBytes: memory.Activations, KVCacheBytes: memory.KVCache, WorkspaceBytes: memory.Workspace,
		CommBuffersBytes: memory.CommBuffers, PeakAllocatedBytes: total, OverheadBytes: overhead, PeakAt: peak.At,
	}
	for i, f := range slack {
		p.SlackBytes[i] = int64(math.Round(f * float64(total)))
	}
	p.DeviceUsedBytes = total + overhead + (p.SlackBytes[0]+p.SlackBytes[1])/2
	return p
}

// fill rounds an arena up to whole granules, the unit of its memory mapping.
func (p *Predicted) fill(granule int64) {
	beyond := (granule - p.PeakAllocatedBytes%granule) % granule
	p.SlackBytes = [2]int64{beyond, beyond}
	p.DeviceUsedBytes += beyond
}

// widen extends a peak to the range that the band of an unreviewed family gives.
func (p *Predicted) widen(table *costmodel.Table) {
	band := table.Band
	p.AtLeast = table.AtLeast
	if band == 0 || p.PeakAllocatedBytes == 0 {
		return
	}
	low, high := p.PeakAllocatedBytes, p.PeakAllocatedBytes
	if len(p.PeakRangeBytes) == 2 {
		low, high = p.PeakRangeBytes[0], p.PeakRangeBytes[1]
	}
	p.PeakRangeBytes = []int64{int64(math.Round((1 - band) * float64(low))), int64(math.Round((1 + band) * float64(high)))}
}
