package estimate

import "github.com/devmap-dev/devmap/costmodel"

// torch is PyTorch's own DistributedDataParallel, FSDP2 and pipelining.
func torch(w *costmodel.Workload) engine {
	e := engine{compute: asWeights, finish: func(e *estimator, t *costmodel.Table) {}}
	switch w.Strategy {
	case costmodel.DDP:
		e.finish = ddp
	case costmodel.FSDP, costmodel.HSDP:
		return fsdp()
	case costmodel.Pipeline:
		e.finish = pipeline
	}
	return e
}

// ddp holds gradients a second time, in buckets, but where they are views of
// them (torch/nn/parallel/distributed.py: gradient_as_bucket_view).
func ddp(e *estimator, t *costmodel.Table) {
	t.OutputsDropped = true
	if e.w.Mode == costmodel.Train && !e.w.GradientViews {
		for i := range e.grads {
			t.Buckets += e.grads[i].first
		}
	}
}
