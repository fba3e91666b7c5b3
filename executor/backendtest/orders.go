package backendtest

import (
	"math/rand/v2"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// RandomOrder returns a schedule that names a random order without a cycle of waits: at each
// step, any action whose input is there runs. No stage is more than two messages ahead of the next,
// as a channel holds two.
func RandomOrder(ranks, batches int64, split, vee bool, random *rand.Rand) costmodel.ScheduleKind {
	schedule := costmodel.Schedule{Stages: ranks, Chunks: 1, Kind: costmodel.OneFOneB}
	if vee {
		schedule.Chunks, schedule.Kind = 2, costmodel.ZBV
	}
	stages := ranks * schedule.Chunks
	ran := make([][order.Weight + 1]int64, stages)
	back := order.Backward
	if split {
		back = order.Input
	}
	ready := func(kind order.Kind, stage int64) bool {
		count := ran[stage][kind]
		if count == batches {
			return false
		}
		switch last := stage == stages-1; {
		case kind == order.Forward:
			return (stage == 0 || ran[stage-1][order.Forward] > count) && (last || count < ran[stage+1][order.Forward]+2)
		case kind == order.Weight:
			return split && ran[stage][order.Input] > count
		case kind != back:
			return false
		case last:
			return ran[stage][order.Forward] > count && (stage == 0 || count < ran[stage-1][back]+2)
		default:
			return ran[stage+1][back] > count && (stage == 0 || count < ran[stage-1][back]+2)
		}
	}
	rows := make([][]order.Action, ranks)
	for {
		var all []order.Action
		for stage := range stages {
			for kind := order.Forward; kind <= order.Weight; kind++ {
				if ready(kind, stage) {
					all = append(all, order.Action{Kind: kind, Chunk: stage})
				}
			}
		}
		if len(all) == 0 {
			return order.Given(vee, rows)
		}
		next := all[random.IntN(len(all))]
		rank, chunk := schedule.Place(next.Chunk)
		rows[rank] = append(rows[rank], order.Action{Kind: next.Kind, Chunk: chunk, MicroBatch: ran[next.Chunk][next.Kind]})
		ran[next.Chunk][next.Kind]++
	}
}
