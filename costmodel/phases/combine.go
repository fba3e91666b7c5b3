package phases

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
)

// Of plans a pipeline on gpus GPUs of one kind: one plan for the given degrees, else one for each
// combination that uses all GPUs. It leaves out unreadable parts, with a warning.
func Of(pipeline *diffusers.Pipeline, asked Workload, gpu costmodel.Device, gpus int) ([]*Plan, error) {
	if asked.Train != nil {
		return train(pipeline, asked, gpu, gpus)
	}
	if gpus > 1 && asked.Offload != "" {
		return nil, oneGPU(asked.Offload)
	}
	var plans []*Plan
	var fault error
	for _, work := range asked.over(int64(gpus)) {
		if err := work.product(int64(gpus)); err != nil {
			fault = err
			continue
		}
		plan, err := of(pipeline, work, gpu)
		if err != nil {
			fault = err
			continue
		}
		plans = append(plans, plan)
	}
	if len(plans) == 0 {
		return nil, remedied(pipeline, asked, gpu, int64(gpus), fault)
	}
	return plans, nil
}

// over are the workloads with degrees for so many GPUs: work alone if it has degrees, else all.
func (work Workload) over(gpus int64) []Workload {
	if work.CFGDegree+work.Ulysses+work.Ring+work.PipeFusion > 0 || gpus == 1 {
		return []Workload{work}
	}
	var all []Workload
	for cfg := int64(1); cfg <= min(2, gpus); cfg++ {
		for _, ulysses := range value.Divisors(gpus) {
			for _, ring := range value.Divisors(gpus) {
				rest := cfg * ulysses * ring
				if gpus%rest != 0 {
					continue
				}
				made := work
				made.CFGDegree, made.Ulysses, made.Ring, made.PipeFusion = cfg, ulysses, ring, gpus/rest
				all = append(all, made)
				if work.FullyShardDegree == 0 && made.PipeFusion == 1 {
					made.FullyShardDegree = gpus
					all = append(all, made)
				}
			}
		}
	}
	return all
}

// peak is the most that a GPU holds.
func (plan *Plan) peak() int64 {
	most := int64(0)
	for _, phase := range plan.Phases {
		for _, used := range phase.Memory {
			most = max(most, used.Total())
		}
	}
	return most
}
