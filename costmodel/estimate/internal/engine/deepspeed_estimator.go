package engine

import "github.com/devmap-dev/devmap/modelgraph"

// ModelStates is what DeepSpeed's own estimator says of a model's states:
// bytes a GPU, and bytes of host memory a node.
type ModelStates struct{ GPU, CPU int64 }

// Cluster is the GPUs that DeepSpeed's estimator is asked about.
type Cluster struct{ GPUsPerNode, Nodes int64 }

// Offload is what DeepSpeed keeps in host memory.
type Offload struct {
	Optimizer, Params bool
	// ZeroInit: zero.Init shards parameters as the model is built; no process has all of them.
	ZeroInit bool
}

// bufferFactor is additional_buffer_factor of both estimators.
const bufferFactor = 1.5

// Zero2ModelStates is the result of estimate_zero2_model_states_mem_needs
// (deepspeed/runtime/zero/stage_1_and_2.py, 0.19.8). It counts 2 B a parameter whole, and 18 B
// sharded: gradients in 16 bits and in fp32, master weights, two states. The paper counts 2 + 14/d
// (ZeRO, section 5): the fp32 gradients exist only in the optimizer's step.
func Zero2ModelStates(params int64, cluster Cluster, offloadOptimizer bool) ModelStates {
	gpus, elements := cluster.GPUsPerNode*cluster.Nodes, float64(params)
	if offloadOptimizer {
		return ModelStates{GPU: 2 * params, CPU: int64(elements * float64(max(4*gpus, 16)) * bufferFactor)}
	}
	return ModelStates{GPU: 2*params + 18*params/gpus, CPU: int64(elements * float64(4*cluster.GPUsPerNode) * bufferFactor)}
}

// Zero3ModelStates is the result of estimate_zero3_model_states_mem_needs
// (deepspeed/runtime/zero/stage3.py, 0.19.8). largest is the parameters of the largest layer
// ([LargestLayer]), gathered, with their gradients.
func Zero3ModelStates(params, largest int64, cluster Cluster, offload Offload) ModelStates {
	gpus, elements := cluster.GPUsPerNode*cluster.Nodes, float64(params)
	whole := float64(4 * cluster.GPUsPerNode) // each process builds all of the model
	states := ModelStates{GPU: 4 * largest}
	share := 16.
	switch {
	case !offload.Optimizer:
		states.GPU += 18 * params / gpus
		if offload.ZeroInit {
			elements = float64(largest)
		}
		states.CPU = int64(elements * whole * bufferFactor)
		return states
	case offload.Params:
		share = 18
	default:
		states.GPU += 2 * params / gpus
	}
	share /= float64(cluster.Nodes)
	if !offload.ZeroInit {
		share = max(share, whole)
	}
	states.CPU = int64(elements * share * bufferFactor)
	return states
}

// LargestLayer is the most parameters that one module holds itself, as stage3.py, model_to_params,
// counts them (tied ones at each module).
func LargestLayer(graph *modelgraph.Graph) int64 {
	var most int64
	direct := make(map[string]int64)
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		for j := range layer.Params {
			name := modelgraph.FullName(layer.Name, layer.Params[j].Name)
			module := name
			for k := len(name) - 1; k >= 0; k-- {
				if name[k] == '.' {
					module = name[:k]
					break
				}
			}
			direct[module] += layer.Params[j].Numel
			most = max(most, direct[module])
		}
	}
	return most
}
