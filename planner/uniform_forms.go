package planner

import "github.com/devmap-dev/devmap/costmodel"

// These engines require the same degrees in all stages, and identical GPUs.
const (
	megatron   = "megatron"
	torchtitan = "torchtitan"
)

// recomputeAuto chooses none or full for each stage.
const recomputeAuto = "auto"

// grid lists the workloads of all degrees whose product is the number of GPUs. The step stays the
// same: open replicas divide the batch into equal parts.
func grid(open costmodel.Workload, gpus, units int64) (out []costmodel.Workload) {
	recomputes := []string{open.Recompute}
	if open.Recompute == recomputeAuto {
		recomputes = []string{costmodel.RecomputeNone, costmodel.RecomputeFull}
	}
	rows, stages := max(1, open.Batch/max(1, open.MicroBatches)), open.PP
	least, most := stageCounts(&open, units)
	if open.Runtime != megatron && open.Runtime != torchtitan { // PP follows from the other degrees
		stages = costmodel.AutoDegree
	}
	for _, tp := range degrees(open.TP, gpus) {
		for _, cp := range degrees(open.CP, gpus/tp) {
			for _, pp := range degrees(stages, gpus/(tp*cp)) {
				dp := gpus / (tp * cp * pp)
				if pp < least || pp > most || !shares(open.DP, dp, rows) {
					continue
				}
				shared := dp * cp
				if open.Runtime == torchtitan {
					shared *= tp
				}
				for _, ep := range degrees(open.EP, shared) {
					for _, recompute := range recomputes {
						out = append(out, formOf(open, tp, cp, pp, dp, ep, recompute))
					}
				}
			}
		}
	}
	return out
}

// stageCounts bounds the number of stages.
func stageCounts(open *costmodel.Workload, units int64) (least, most int64) {
	least, most = 1, units
	if open.Runtime != megatron { // torch's schedules allow at most one stage per micro-batch
		most = min(units, max(1, open.MicroBatches))
	}
	if open.Schedule == costmodel.Interleaved && open.PP == costmodel.AutoDegree { // its chunks go round two stages or more
		least, most = 2, max(2, most)
	}
	return least, most
}

// shares reports that replicas is the requested degree. For an open degree it reports that the
// replicas divide the rows equally.
func shares(asked costmodel.Degree, replicas, rows int64) bool {
	if asked == costmodel.AutoDegree {
		return rows%replicas == 0
	}
	return asked == 0 || replicas == asked.Count()
}

// formOf returns the workload with these degrees.
func formOf(open costmodel.Workload, tp, cp, pp, dp, ep int64, recompute string) costmodel.Workload {
	one := open
	one.TP, one.CP, one.PP, one.DP, one.EP = costmodel.Degree(tp), costmodel.Degree(cp), costmodel.Degree(pp), costmodel.Degree(dp), costmodel.Degree(ep)
	one.Recompute, one.SequenceParallel = recompute, open.SequenceParallel && tp > 1
	if open.DP == costmodel.AutoDegree {
		one.Batch = open.Batch / dp
	}
	if open.ShardDegree > 1 { // it followed degrees that were open
		one.ShardDegree = 0
	}
	if open.Runtime != megatron && open.Runtime != torchtitan {
		one.PP = 0 // the product determines this degree
	}
	return one
}

// degrees lists the values of a degree that divide so many GPUs.
func degrees(degree costmodel.Degree, within int64) (out []int64) {
	for count := int64(1); count <= within; count++ {
		if within%count == 0 && (degree == costmodel.AutoDegree || count == degree.Count()) {
			out = append(out, count)
		}
	}
	return out
}
