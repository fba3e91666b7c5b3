package strategy

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
)

// replicas is the number of GPUs, or groups of stages, with a separate batch. A policy in JAX runs
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
