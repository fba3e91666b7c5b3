package devicemap

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// Prediction is what one device will hold.
type Prediction struct {
	Device        int       `json:"device"`
	CapacityBytes int64     `json:"capacity_bytes"`
	ReservedBytes int64     `json:"reserved_bytes"`
	Predicted     Predicted `json:"predicted"`
	HeadroomBytes int64     `json:"headroom_bytes"`

	Units int `json:"-"` // how many units it holds
}

// Predicted is a device's peak by category, and what comes on top of it.
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
	// PeakRangeBytes are the least and the most that the peak may be, where it
	// is not one figure.
	PeakRangeBytes []int64 `json:"peak_range_bytes,omitzero"`
}

// Budget is capacity less what is reserved.
func (p *Prediction) Budget() int64 { return p.CapacityBytes - p.ReservedBytes }

// Share is the part of the budget that is used; it fits up to 1.
func (p *Prediction) Share() float64 {
	return float64(p.Predicted.PeakAllocatedBytes+p.Predicted.OverheadBytes) / float64(p.Budget())
}

// Predict walks through a step on every device of the topology. Of a strategy
// that runs no device map it says nothing, and [Check] finds it at fault.
func Predict(t *costmodel.Table, topo *costmodel.Topology, m Map) []Prediction {
	switch strategy := t.Workload.Strategy; {
	case strategy.Traits().Staged:
		return stagesOf(t, m, len(topo.Devices)).predict(t, topo)
	case !mapped(strategy):
		m = nil
	}
	out := make([]Prediction, len(topo.Devices))
	held := make([][]*costmodel.Unit, len(topo.Devices))
	main := mainDevice(t, m)
	for u, d := range m {
		switch {
		case d >= 0 && int(d) < len(held):
			held[d] = append(held[d], &t.Units[u])
		case (d == CPU || d == Disk) && main >= 0 && main < len(held):
			streamed := t.Units[u].Streamed()
			held[main] = append(held[main], &streamed)
		}
	}
	for d := range out {
		out[d] = predict(t, d, &topo.Devices[d], held[d])
	}
	return out
}

// PredictReplicas is every GPU's prediction where each runs the whole model
// ([costmodel.Traits]). A strategy that has no replicas is an error.
func PredictReplicas(t *costmodel.Table, topo *costmodel.Topology) ([]Prediction, error) {
	out := make([]Prediction, len(topo.Devices))
	peaks := make(map[costmodel.Device]timeline.Peak) // of devices that are alike: thousands may be
	for d := range out {
		dev := &topo.Devices[d]
		p := Prediction{Device: d, CapacityBytes: dev.CapacityBytes, ReservedBytes: dev.ReservedBytes, Units: len(t.Units)}
		peak, known := peaks[*dev]
		if !known {
			events, err := timeline.Replica(t, dev)
			if err != nil {
				return nil, err
			}
			peak = timeline.Walk(events)
			peaks[*dev] = peak
		}
		p.Predicted = predicted(peak, t.Overhead(d, dev), t.SlackOf(dev, true))
		if t.SecondBuckets > 0 {
			p.Predicted.PeakRangeBytes = []int64{p.Predicted.PeakAllocatedBytes, p.Predicted.PeakAllocatedBytes + t.SecondBuckets}
		}
		p.Predicted.widen(t.Band)
		p.HeadroomBytes = p.Budget() - p.Predicted.PeakAllocatedBytes - p.Predicted.OverheadBytes
		out[d] = p
	}
	return out, nil
}

// mapped reports a strategy that runs a device map in sequence. The empty one
// is what estimate.Resolve makes of it.
func mapped(s costmodel.Strategy) bool { return s == "" || s.Traits().Sequential }

func predict(t *costmodel.Table, d int, dev *costmodel.Device, units []*costmodel.Unit) Prediction {
	p := Prediction{Device: d, CapacityBytes: dev.CapacityBytes, ReservedBytes: dev.ReservedBytes, Units: len(units)}
	kept := timeline.ResidentOn(t, d, dev, len(units) == 0)
	if len(units) > 0 || kept.Output > 0 {
		peak := timeline.Walk(timeline.DeviceMap(t.Workload.Mode, units, kept))
		p.Predicted = predicted(peak, t.Overhead(d, dev), t.SlackOf(dev, kept.Output > 0 || endsModel(units)))
		p.Predicted.widen(t.Band)
	}
	p.HeadroomBytes = p.Budget() - p.Predicted.PeakAllocatedBytes - p.Predicted.OverheadBytes
	return p
}

// endsModel reports that a device computes the loss or the logits.
func endsModel(units []*costmodel.Unit) bool {
	return slices.ContainsFunc(units, func(u *costmodel.Unit) bool {
		return slices.ContainsFunc(u.Layers, func(s costmodel.LayerMemory) bool { return s.Loss || s.HeadPeak > 0 && s.KV == 0 })
	})
}

func predicted(peak timeline.Peak, overhead int64, slack [2]float64) Predicted {
	m := peak.Memory
	total := m.Total()
	p := Predicted{
		ParamsBytes: m.Params, GradsBytes: m.Grads, OptimizerStateBytes: m.OptimizerState,
		ActivationsBytes: m.Activations, KVCacheBytes: m.KVCache, WorkspaceBytes: m.Workspace,
		CommBuffersBytes: m.CommBuffers, PeakAllocatedBytes: total, OverheadBytes: overhead, PeakAt: peak.At,
	}
	for i, f := range slack {
		p.SlackBytes[i] = int64(math.Round(f * float64(total)))
	}
	p.DeviceUsedBytes = total + overhead + (p.SlackBytes[0]+p.SlackBytes[1])/2
	return p
}

// Imbalance is the largest allocated peak over the mean of all devices, idle
// ones included.
func Imbalance(ps []Prediction) float64 {
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

// StepSeconds is [steptime.Step] of a placement; m is nil where
// every GPU runs the whole model.
func StepSeconds(t *costmodel.Table, topo *costmodel.Topology, m Map) *float64 {
	seconds, err := steptime.Step(t, topo, m.places())
	if err != nil {
		return nil
	}
	return &seconds
}

// Communication is [costmodel.Table.Communication] of a placement.
func Communication(t *costmodel.Table, topo *costmodel.Topology, m Map) int64 {
	return steptime.Communication(t, topo, m.places())
}

// places are the device indices of the units.
func (m Map) places() []int {
	if m == nil {
		return nil
	}
	out := make([]int, len(m))
	for u, d := range m {
		out[u] = int(d)
	}
	return out
}
