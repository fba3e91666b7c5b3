package devicemap

import (
	"fmt"
	"strconv"

	"github.com/devmap-dev/devmap/modelgraph"
)

// consistent reports a plan that contradicts itself, for example after an edit. [Check] compares
// the map with its model.
func (plan *Plan) consistent(file string) error {
	fault := func(place, format string, args ...any) error {
		return &modelgraph.SyntaxError{File: file, Place: place, Msg: fmt.Sprintf(format, args...)}
	}
	// The pipeline section has a diffusion pipeline's workload.
	if field, msg := plan.Workload.Fault(); field != "" && len(plan.Phases) == 0 {
		return fault("workload."+field, "%s", msg)
	}
	count := len(plan.Topology.Devices)
	if world := plan.Workload.World; world > 0 && world != int64(count) {
		return fault("workload.world", "%d, and the topology has %s", world, devices(count))
	}
	for _, fault := range []*fieldFault{plan.strategyFault(), plan.predictionsFault("devices", plan.Devices), plan.hostFault(), plan.figuresFault()} {
		if fault != nil {
			return fault.in(file)
		}
	}
	return nil
}

// mostBytes is larger than any GPU's memory, and small enough that sums of a prediction's parts fit
// into an int64.
const mostBytes = 1 << 56

// unlikely returns the first field of a prediction with an impossible number of bytes, and its
// value; "" if there is none. Fields that follow from others have their own checks.
func (prediction *Prediction) unlikely() (field string, value int64) {
	m := &prediction.Predicted
	for _, part := range []struct {
		field string
		bytes int64
	}{
		{"capacity_bytes", prediction.CapacityBytes},
		{"reserved_bytes", prediction.ReservedBytes},
		{"predicted.params_bytes", m.ParamsBytes},
		{"predicted.grads_bytes", m.GradsBytes},
		{"predicted.optimizer_state_bytes", m.OptimizerStateBytes},
		{"predicted.activations_bytes", m.ActivationsBytes},
		{"predicted.kv_cache_bytes", m.KVCacheBytes},
		{"predicted.workspace_bytes", m.WorkspaceBytes},
		{"predicted.comm_buffers_bytes", m.CommBuffersBytes},
		{"predicted.overhead_bytes", m.OverheadBytes},
		{"predicted.slack_bytes[0]", m.SlackBytes[0]},
		{"predicted.slack_bytes[1]", m.SlackBytes[1]},
		{"predicted.device_used_bytes", m.DeviceUsedBytes},
		{"predicted.usual_peak_bytes", m.UsualPeakBytes},
		{"predicted.host_bytes", m.HostBytes},
	} {
		if part.bytes < 0 || part.bytes > mostBytes {
			return part.field, part.bytes
		}
	}
	return "", 0
}

// placeable reports a map that cannot place modules: one with a device outside the plan, or a
// module inside another module of the map.
func (plan *Plan) placeable(file string) error {
	fault := func(key, format string, args ...any) error {
		return &modelgraph.SyntaxError{File: file, Place: "device_map." + strconv.Quote(key), Msg: fmt.Sprintf(format, args...)}
	}
	count := len(plan.Topology.Devices)
	entries := make(map[string]Device, len(plan.DeviceMap))
	for _, entry := range plan.DeviceMap {
		if int(entry.Device) >= count {
			return fault(entry.Key, "device %d is not among the %s of the plan's topology (0 to %d)", entry.Device, devices(count), count-1)
		}
		entries[entry.Key] = entry.Device
	}
	for _, entry := range plan.DeviceMap {
		for outer := range ancestors(entry.Key) {
			if _, ok := entries[outer]; ok {
				return fault(entry.Key, "it lies inside %q, which has a device of its own", outer)
			}
		}
	}
	return nil
}

// spread reports stages whose GPUs or degrees do not match the topology.
func (plan *Plan) spread(file string) error {
	fault := func(i int, field, format string, args ...any) error {
		return &modelgraph.SyntaxError{File: file, Place: fmt.Sprintf("stages[%d].%s", i, field), Msg: fmt.Sprintf(format, args...)}
	}
	count, taken, several, known := len(plan.Topology.Devices), 0, false, make(map[Device]bool)
	for i := range plan.Stages {
		stage := &plan.Stages[i]
		for field, degree := range map[string]int64{"dp": stage.DP, "tp": stage.TP} {
			if degree < 0 || degree > int64(count) {
				return fault(i, field, "%d is no number of the topology's %s", degree, devices(count))
			}
		}
		size := int(max(1, stage.DP) * max(1, stage.TP) * plan.Workload.CP.Count())
		if len(stage.Devices) > 0 {
			several = true
			if len(stage.Devices) != size || stage.Devices[0] != int(stage.Device) {
				return fault(i, "devices", "%v are not the %d GPUs from device %v on", stage.Devices, size, stage.Device)
			}
		}
		if !known[stage.Device] { // interleaved stages share a rank's GPUs
			taken += size
		}
		known[stage.Device] = true
	}
	if several && taken != count {
		return fault(0, "devices", "the stages have %d GPUs, and the topology %d", taken, count)
	}
	return nil
}

func devices(count int) string {
	if count == 1 {
		return "1 device"
	}
	return fmt.Sprintf("%d devices", count)
}
