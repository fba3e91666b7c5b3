package estimate

import "github.com/devmap-dev/devmap/costmodel"

// torch is PyTorch's own DistributedDataParallel, FSDP2 and pipelining.
func torch(w *costmodel.Workload) engine {
	switch w.Strategy {
	case costmodel.FSDP, costmodel.HSDP:
		return fsdp()
	case costmodel.Pipeline:
		return engine{compute: asWeights, finish: pipeline}
	default:
		return ddp(w)
	}
}
