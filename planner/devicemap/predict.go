package devicemap

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

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

// mainDevice is where offloaded units run: the first device with a unit
// (Accelerate 1.15, big_modeling.py dispatch_model: main_device is the first
// of the set of devices that are no tiers). -1 where none has one, and in
// training, which Accelerate does not offload.
func mainDevice(t *costmodel.Table, m Map) int {
	out := -1
	for _, d := range m {
		if d >= 0 && (out < 0 || int(d) < out) {
			out = int(d)
		}
	}
	if t.Workload.Mode == costmodel.Train {
		return -1
	}
	return out
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
