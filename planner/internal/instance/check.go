package instance

import (
	"fmt"
	"math"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
)

// CheckCosts refuses costs that are NaN, infinite or negative, as sums and comparisons need finite
// costs.
func CheckCosts(table *costmodel.Table) error {
	for unit := range table.Units {
		work := &table.Units[unit].Work
		for _, cost := range []struct {
			name  string
			value float64
		}{
			{"forward", total(work.Forward)},
			{"backward", total(work.Backward)},
			{"token", total(work.Token)},
			{"update", work.Update},
			{"FLOPs", table.Units[unit].FLOPs},
		} {
			if math.IsNaN(cost.value) || math.IsInf(cost.value, 0) || cost.value < 0 {
				return fmt.Errorf("planner: unit %q: its %s cost is %v: costs must be finite and not negative", table.Units[unit].Name, cost.name, cost.value)
			}
		}
		if err := checkLayers(&table.Workload, &table.Units[unit]); err != nil {
			return err
		}
	}
	return nil
}

// checkLayers refuses costs in a caller's own table that no engine has. Layers cannot run if the
// workload only loads weights. Without a backward pass, a pipeline stage keeps nothing of a
// forward.
func checkLayers(workload *costmodel.Workload, unit *costmodel.Unit) error {
	for i := range unit.Layers {
		switch layer := &unit.Layers[i]; {
		case workload.Mode == costmodel.Load && *layer != costmodel.LayerMemory{Layer: layer.Layer, Weights: layer.Weights}:
			return costmodel.Refuse(costmodel.Set("mode", workload.Mode), "unit %q: layer %q takes memory other than its weights, and loading alone runs nothing", unit.Name, layer.Layer)
		case workload.Mode != costmodel.Train && workload.Strategy.Traits().Staged && layer.Saved+layer.KV+layer.UntilBodyEnd != 0:
			return costmodel.Refuse(costmodel.Set("mode", workload.Mode), "unit %q: layer %q keeps %v of a forward, and a pipeline's stages keep nothing where no backward follows", unit.Name, layer.Layer, costmodel.Bytes(layer.Saved+layer.KV+layer.UntilBodyEnd))
		}
	}
	return nil
}

// total returns the sum of a pass's parts. It is NaN, infinite or negative if a part is.
func total(pass costmodel.Pass) float64 {
	if low := min(pass.Products, pass.Unaligned, pass.Attention, pass.Traffic, pass.Strided, pass.Kernels, pass.Profiled); low < 0 {
		return low
	}
	return pass.Products + pass.Unaligned + pass.Attention + pass.Traffic + pass.Strided + pass.Kernels + pass.Profiled
}

// These limits are far beyond any machine, in seconds and bytes a second. They are also far from
// the limits of a float64.
const (
	longestStep = 1e30
	slowestLink = 1e-3
)

// CheckTimes refuses devices without rates. It also refuses rates so small, or times so long, that
// steps, bounds or fixed-point times are not finite.
func (setup *Setup) CheckTimes() error {
	if err := steptime.Check(setup.Timed(), setup.Topology); err != nil {
		return err
	}
	longest := 0.
	passes, tokens := setup.Passes()
	unlike := setup.Unlike()
	for unitIndex := range setup.Costs.Units {
		slowest := 0.
		for _, device := range unlike {
			unit := steptime.Unit(setup.Timed(), setup.Topology, device, unitIndex)
			slowest = max(slowest, passes*(unit.Forward+unit.Backward+unit.Issue+unit.IssueBack)+tokens*(unit.Token+unit.IssueToken)+unit.Update)
		}
		longest += slowest
	}
	if !(longest <= longestStep) {
		return &costmodel.FieldError{Msg: costmodel.Messagef("the time of a step is %v s where each unit is on its slowest device: no more than %v s can be compared; the devices' rates are too small", longest, longestStep)}
	}
	for i := range setup.Topology.Links {
		link := &setup.Topology.Links[i]
		if link.BytesPerSecond < slowestLink {
			return &costmodel.FieldError{Msg: costmodel.Messagef("links[%d]: %v bytes/s from device %d to %d: a step over it has no time that can be compared (%v works; leave the link out where there is none)", i, link.BytesPerSecond, link.From, link.To, slowestLink)}
		}
	}
	return nil
}
