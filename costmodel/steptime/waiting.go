package steptime

import "github.com/devmap-dev/devmap/costmodel"

// waiting is [timing.lockStep] where a round has fewer micro-batches than
// there are ranks: a rank then comes to its next chunk before its input went
// round the others, and waits for it (_PipelineScheduleRuntime._perform_action
// waits for the receive). Each rank goes through its actions, one in a step,
// as soon as what an action needs was made in a step before. As there are
// few micro-batches, there are few steps.
func (k *lockStep) waiting(schedule costmodel.Schedule) []float64 {
	clocks := make([]float64, 2*len(k.held))
	orders := make([][]made, len(k.device))
	for rank, d := range k.device {
		for _, a := range schedule.Order(int64(rank)) {
			if a.Chunk < int64(len(k.held[d])) && (!a.Backward || k.t.Workload.Mode == costmodel.Train) {
				orders[rank] = append(orders[rank], made{action{k.held[d][a.Chunk], a.Backward}, a.MicroBatch})
			}
		}
	}
	done := map[made]bool{}
	for {
		var now []made
		k.step = make([]*action, len(k.device))
		for rank, order := range orders {
			if len(order) > 0 && k.has(done, order[0]) {
				a := order[0]
				now, orders[rank] = append(now, a), order[1:]
				k.step[rank] = &a.action
			}
		}
		if len(now) == 0 {
			return clocks[:len(k.held)]
		}
		k.steps(clocks, 0, 1)
		for _, a := range now {
			done[a] = true
		}
	}
}

// made is an action for a micro-batch.
type made struct {
	action
	batch int64
}

// has reports that what an action needs was made.
func (k *lockStep) has(done map[made]bool, a made) bool {
	needs := action{a.stage - 1, false}
	switch {
	case a.backward && a.stage == len(k.stages)-1:
		needs = action{a.stage, false}
	case a.backward:
		needs = action{a.stage + 1, true}
	case a.stage == 0:
		return true
	}
	return done[made{needs, a.batch}]
}
