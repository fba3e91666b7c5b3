package devicemap

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
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
}

// Budget is capacity less what is reserved.
func (p *Prediction) Budget() int64 { return p.CapacityBytes - p.ReservedBytes }

// Share is the part of the budget that is used; it fits up to 1.
func (p *Prediction) Share() float64 {
	return float64(p.Predicted.PeakAllocatedBytes+p.Predicted.OverheadBytes) / float64(p.Budget())
}

// Predict walks through a step on every device of the topology.
func Predict(t *costmodel.Table, topo *costmodel.Topology, m Map) []Prediction {
	out := make([]Prediction, len(topo.Devices))
	held := make([][]*costmodel.Unit, len(topo.Devices))
	for u, d := range m {
		if d >= 0 && int(d) < len(held) {
			held[d] = append(held[d], &t.Units[u])
		}
	}
	for d := range out {
		out[d] = predict(t, d, &topo.Devices[d], held[d])
	}
	return out
}

// PredictReplicas is every GPU's prediction where each runs the whole model
// ([costmodel.Strategy.Replicated]).
func PredictReplicas(t *costmodel.Table, topo *costmodel.Topology) []Prediction {
	out := make([]Prediction, len(topo.Devices))
	for d := range out {
		dev := &topo.Devices[d]
		p := Prediction{Device: d, CapacityBytes: dev.CapacityBytes, ReservedBytes: dev.ReservedBytes, Units: len(t.Units)}
		p.Predicted = predicted(t.Replica(dev), t.Overhead(d, dev), t.SlackOf(dev, true))
		p.HeadroomBytes = p.Budget() - p.Predicted.PeakAllocatedBytes - p.Predicted.OverheadBytes
		out[d] = p
	}
	return out
}

func predict(t *costmodel.Table, d int, dev *costmodel.Device, units []*costmodel.Unit) Prediction {
	p := Prediction{Device: d, CapacityBytes: dev.CapacityBytes, ReservedBytes: dev.ReservedBytes, Units: len(units)}
	kept := t.Kept(d, dev, len(units) == 0)
	if len(units) > 0 || kept.Output > 0 {
		peak := costmodel.Walk(t.Workload.Mode, units, kept)
		p.Predicted = predicted(peak, t.Overhead(d, dev), t.SlackOf(dev, kept.Output > 0 || endsModel(units)))
	}
	p.HeadroomBytes = p.Budget() - p.Predicted.PeakAllocatedBytes - p.Predicted.OverheadBytes
	return p
}

// endsModel reports that a device computes the loss or the logits.
func endsModel(units []*costmodel.Unit) bool {
	return slices.ContainsFunc(units, func(u *costmodel.Unit) bool {
		return slices.ContainsFunc(u.Steps, func(s costmodel.Step) bool { return s.Loss || s.Late > 0 && s.KV == 0 })
	})
}

func predicted(peak costmodel.Peak, overhead int64, slack [2]float64) Predicted {
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

// StepSeconds is the time of one step: every device works in turn, so the
// units' products at the device's rate add up. Memory-bound work and launch
// gaps are not in it. Nil in load mode or where the rate is unknown.
func StepSeconds(t *costmodel.Table, topo *costmodel.Topology, m Map) *float64 {
	if t.Workload.Mode == costmodel.Load {
		return nil
	}
	passes := 1.0
	if t.Workload.Mode == costmodel.Train {
		passes = 3 // backward is two products for each of forward
	}
	var s float64
	for u, d := range m {
		if d < 0 || int(d) >= len(topo.Devices) || topo.Devices[d].FLOPS <= 0 {
			return nil
		}
		p := passes
		if t.Units[u].Recompute {
			p++
		}
		s += p * t.Units[u].FLOPs / topo.Devices[d].FLOPS
	}
	s *= float64(t.Workload.MicroBatches)
	return &s
}
