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
	// ZeroInit: parameters are cut as the model is built (zero.Init), so that
	// no process ever holds all of them.
	ZeroInit bool
}

// bufferFactor is additional_buffer_factor of both estimators.
const bufferFactor = 1.5

// Zero2ModelStates is what deepspeed/runtime/zero/stage_1_and_2.py,
// estimate_zero2_model_states_mem_needs, prints for ZeRO 2 (0.19.8): 2 B a
// parameter whole, and 18 B cut over the GPUs: gradients in 16 bits and again
// in fp32, master weights, two states. The paper counts 2 + 14/d
// (ZeRO, section 5): the fp32 gradients are there in the optimizer's step alone.
func Zero2ModelStates(params int64, c Cluster, offloadOptimizer bool) ModelStates {
	gpus, p := c.GPUsPerNode*c.Nodes, float64(params)
	if offloadOptimizer {
		return ModelStates{GPU: 2 * params, CPU: int64(p * float64(max(4*gpus, 16)) * bufferFactor)}
	}
	return ModelStates{GPU: 2*params + 18*params/gpus, CPU: int64(p * float64(4*c.GPUsPerNode) * bufferFactor)}
}

// Zero3ModelStates is what deepspeed/runtime/zero/stage3.py,
// estimate_zero3_model_states_mem_needs, prints for ZeRO 3 (0.19.8). largest
// is the parameters of the largest layer ([LargestLayer]), gathered, with
// their gradients.
func Zero3ModelStates(params, largest int64, c Cluster, o Offload) ModelStates {
	gpus, p := c.GPUsPerNode*c.Nodes, float64(params)
	whole := float64(4 * c.GPUsPerNode) // each process builds all of the model
	s := ModelStates{GPU: 4 * largest}
	share := 16.
	switch {
	case !o.Optimizer:
		s.GPU += 18 * params / gpus
		if o.ZeroInit {
			p = float64(largest)
		}
		s.CPU = int64(p * whole * bufferFactor)
		return s
	case o.Params:
		share = 18
	default:
		s.GPU += 2 * params / gpus
	}
	share /= float64(c.Nodes)
	if !o.ZeroInit {
		share = max(share, whole)
	}
	s.CPU = int64(p * share * bufferFactor)
	return s
}

// LargestLayer is the most parameters that one module holds itself, as
// stage3.py, model_to_params, counts them (tied ones at each module).
func LargestLayer(g *modelgraph.Graph) int64 {
	var most int64
	direct := make(map[string]int64)
	for i := range g.Layers {
		l := &g.Layers[i]
		for j := range l.Params {
			name := modelgraph.FullName(l.Name, l.Params[j].Name)
			module := name
			for k := len(name) - 1; k >= 0; k-- {
				if name[k] == '.' {
					module = name[:k]
					break
				}
			}
			direct[module] += l.Params[j].Numel()
			most = max(most, direct[module])
		}
	}
	return most
}
