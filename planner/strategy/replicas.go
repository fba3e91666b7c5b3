package strategy

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
)

// replicas is how many GPUs, or stages of them, work on a batch of their own. A policy in JAX runs
// on one GPU.
func replicas(workload *costmodel.Workload, gpus int64) int64 {
	_, program := estimate.Native(nil)
	switch {
	case workload.Runtime == program && workload.Mode == costmodel.Infer:
		return 1
	case workload.Strategy.Traits().Replicated:
		return gpus
	}
	return workload.DP.Count()
}
