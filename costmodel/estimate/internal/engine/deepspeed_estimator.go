package engine

import "github.com/devmap-dev/devmap/modelgraph"

// zero2Estimate is the result of estimate_zero2_model_states_mem_needs for a GPU
// (deepspeed/runtime/zero/stage_1_and_2.py, 0.19.8), in bytes. It counts 2 B a parameter whole, and
// 18 B sharded: gradients in 16 bits and in fp32, master weights, two states. The paper counts
// 2 + 14/d (ZeRO, section 5): the fp32 gradients exist only in the optimizer's step.
func zero2Estimate(params, gpus int64, offloadOptimizer bool) int64 {
	if offloadOptimizer {
		return 2 * params
	}
	return 2*params + 18*params/gpus
}

// zero3Estimate is the result of estimate_zero3_model_states_mem_needs for a GPU
// (deepspeed/runtime/zero/stage3.py, 0.19.8), in bytes. largest is the parameters of the largest
// layer ([largestLayer]), gathered, with their gradients.
func zero3Estimate(params, largest, gpus int64, offloadOptimizer, offloadParams bool) int64 {
	switch {
	case !offloadOptimizer:
		return 4*largest + 18*params/gpus
	case offloadParams:
		return 4 * largest
	}
	return 4*largest + 2*params/gpus
}

// largestLayer is the most parameters that one module holds itself, as stage3.py, model_to_params,
// counts them (tied ones at each module).
func largestLayer(graph *modelgraph.Graph) int64 {
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
