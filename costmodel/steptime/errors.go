package steptime

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// errorf says that a step's time is not known.
func errorf(format string, args ...any) error {
	return &costmodel.FieldError{Msg: costmodel.Messagef("the time of a step: "+format, args...)}
}

// Check reports why [Step] has no answer wherever units are, a
// [*costmodel.FieldError]; nil if it has one.
func Check(table *costmodel.Table, topo *costmodel.Topology) error {
	workload := &table.Workload
	if workload.Mode == costmodel.Load {
		return errorf("nothing runs in %v (infer and train work)", costmodel.Setting{Field: "mode", Value: string(workload.Mode)})
	}
	if traits := workload.Strategy.Traits(); !traits.Sequential && !traits.Staged && !traits.Replicated {
		return errorf("%q is no strategy that runs (one of %v is)", workload.Strategy, costmodel.Strategies())
	}
	if kind := workload.Schedule; workload.Strategy.Traits().Staged && kind != "" && !simulates(kind) && (!kind.Split() || workload.Runtime != costmodel.Devmap) {
		return errorf("no order of actions is known for schedule %q", kind)
	}
	if len(table.Units) > 0 && !slices.ContainsFunc(table.Units, runs) {
		return errorf("no unit has a known operation or a declared cost")
	}
	for device := range topo.Devices {
		if topo.Devices[device].FLOPS <= 0 {
			return errorf("device %d (%q) has no known rate (\"flops\" in the topology)", device, topo.Devices[device].Name)
		}
	}
	return nil
}

// runs reports a unit with a known forward.
func runs(unit costmodel.Unit) bool {
	pass := &unit.Work.Forward
	return unit.Declared || pass.Products+pass.Attention+pass.Traffic+pass.Strided+pass.Profiled > 0
}
