package planner

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
)

// copying adds the rates of copies between GPUs and host, if activations are offloaded.
func (problem Problem) copying() (Problem, error) {
	text := problem.Costs.Workload.OffloadActivations
	if text == "" {
		return problem, nil
	}
	topology, err := catalogue.WithCopies(problem.Topology)
	if err != nil {
		return problem, costmodel.Refuse(costmodel.Set("offload_activations", text), "%v", err)
	}
	problem.Topology = topology
	return problem, nil
}

// hosted refuses a plan whose activations take more of the host's memory than the topology gives.
func (solution *Solution) hosted() error {
	if solution.Topology == nil || solution.Topology.HostMemoryBytes == 0 {
		return nil
	}
	var need int64
	for i := range solution.Devices {
		need += solution.Devices[i].Predicted.HostBytes
	}
	if has := solution.Topology.HostMemoryBytes; need > has {
		return costmodel.Refuse(costmodel.Set("offload_activations", solution.Costs.Workload.OffloadActivations),
			"activations take %v of the host's memory, and the topology gives %v: %v too little. Offload fewer blocks, or recompute them: %v",
			costmodel.Bytes(need), costmodel.Bytes(has), costmodel.Bytes(need-has), costmodel.Set("recompute", costmodel.RecomputeFull))
	}
	return nil
}
