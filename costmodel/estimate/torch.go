package estimate

import "github.com/devmap-dev/devmap/costmodel"

// torch is PyTorch's own DistributedDataParallel, FSDP2 and pipelining.
func torch(w *costmodel.Workload) engine {
	e := engine{compute: asWeights, finish: func(e *estimator, t *costmodel.Table) {}}
	switch w.Strategy {
	case costmodel.DDP:
		return ddp(w)
	case costmodel.FSDP, costmodel.HSDP:
		return fsdp()
	case costmodel.Pipeline:
		e.finish = pipeline
	}
	return e
}
