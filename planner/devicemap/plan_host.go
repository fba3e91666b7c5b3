package devicemap

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
)

// HostMemory returns the bytes of the host's memory that activations of all devices take, and how many
// of them the topology lacks.
func HostMemory(devices []Prediction, topo *costmodel.Topology) (need, lacks int64) {
	for i := range devices {
		need += devices[i].Predicted.HostBytes
	}
	if topo.HostMemoryBytes > 0 {
		lacks = max(0, need-topo.HostMemoryBytes)
	}
	return need, lacks
}

// hostFits reports activations that need more host memory than the topology has.
func (check *checker) hostFits(devices []Prediction, topo *costmodel.Topology) {
	if need, lacks := HostMemory(devices, topo); lacks > 0 {
		check.fault(doesNotFit, "the host", "activations take %d bytes of the host's memory, and the topology gives %d: %d too little", need, topo.HostMemoryBytes, lacks)
	}
}

// hostFault reports activations in host memory that contradict the rest of the plan.
func (plan *Plan) hostFault() *fieldFault {
	if wrong := plan.offloadFault(); wrong != nil {
		return wrong
	}
	const own = "predicted.host_bytes"
	for i := range plan.Devices {
		bytes := plan.Devices[i].Predicted.HostBytes
		if bytes == 0 {
			continue
		}
		if plan.Workload.OffloadActivations == "" {
			return faultOf(fmt.Sprintf("devices[%d].%s", i, own), "%d, and the workload has no offload_activations", bytes)
		}
		if down, up := plan.Topology.Devices[i].Copies(); down <= 0 || up <= 0 {
			return faultOf(fmt.Sprintf("topology.devices[%d].pinned_bytes_per_second", i), "missing, and devices[%d].%s is %d", i, own, bytes)
		}
	}
	if need, lacks := HostMemory(plan.Devices, &plan.Topology); lacks > 0 {
		return faultOf("topology.host_memory_bytes", "%d, and activations of \"devices\" take %d of the host's memory", plan.Topology.HostMemoryBytes, need)
	}
	return nil
}

// offloadFault reports blocks that the plan's job or stages cannot move.
func (plan *Plan) offloadFault() *fieldFault {
	const list = "workload.offload_activations"
	workload := &plan.Workload
	switch blocks := workload.OffloadActivations; {
	case blocks == "":
		return nil
	case blocks == "none" || blocks == "auto":
		return faultOf(list, "%q is no set of blocks: a plan has full or a list such as 0-5,9, and leaves the field out if no block moves", blocks)
	case workload.Mode != costmodel.Train || workload.Runtime != costmodel.Devmap || !workload.Strategy.Traits().Staged:
		return faultOf(list, "%q, and only runtime %q moves activations, in training with strategy %q", blocks, costmodel.Devmap, costmodel.Pipeline)
	}
	units := 0
	for i := range plan.Stages {
		units += len(plan.Stages[i].Units)
	}
	if _, err := workload.Offloads(units); err != nil {
		return faultOf(list, "%q has a block that the %d units of the plan's stages cannot have", workload.OffloadActivations, units)
	}
	return nil
}
