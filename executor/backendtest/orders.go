package backendtest

import (
	"math/rand/v2"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// RandomOrder returns a schedule that names a random order without a cycle of waits: at each
// step, any action whose input is there runs. No stage is more than two messages ahead of the next,
// as a channel holds two. Every rank must hold units. The last rank of a V then has one run for its
// two stages ([Vee]), and its second stage holds no message.
func RandomOrder(ranks, batches int64, like costmodel.ScheduleKind, random *rand.Rand) costmodel.ScheduleKind {
	schedule := costmodel.Schedule{Stages: ranks, Chunks: 1, Kind: like}
	if like.Chunked() {
		schedule.Chunks = 2
	}
	stages := ranks * schedule.Chunks
	passes := progress{ran: make([][order.Weight + 1]int64, stages), batches: batches, back: order.Backward}
	if passes.merged = -1; like.Vee() {
		passes.merged = ranks
	}
	if split := like.Split() || like.Loops() && random.IntN(2) == 0; split {
		passes.back = order.Input
	}
	rows := make([][]order.Action, ranks)
	for {
		var all []order.Action
		for stage := range stages {
			for kind := order.Forward; kind <= order.Weight; kind++ {
				if passes.ready(kind, stage) {
					all = append(all, order.Action{Kind: kind, Chunk: stage})
				}
			}
		}
		if len(all) == 0 {
			return order.Given(like.Vee(), rows)
		}
		next := all[random.IntN(len(all))]
		rank, chunk := schedule.Place(next.Chunk)
		rows[rank] = append(rows[rank], order.Action{Kind: next.Kind, Chunk: chunk, MicroBatch: passes.ran[next.Chunk][next.Kind]})
		passes.ran[next.Chunk][next.Kind]++
	}
}

// progress is how many micro-batches each kind of pass of a stage has run.
type progress struct {
	ran     [][order.Weight + 1]int64 // by stage
	batches int64
	back    order.Kind // the pass that makes the gradient of a stage's input
	merged  int64      // the stage whose units run with the stage before; -1: none
}

// ready reports that the next pass of this kind has its input, and room for its message.
func (passes *progress) ready(kind order.Kind, stage int64) bool {
	ran, back := passes.ran, passes.back
	count, last := ran[stage][kind], stage == int64(len(ran))-1
	after, before := stage+1, stage-1 // they take the messages of this stage
	if after == passes.merged {
		after++
	}
	if before == passes.merged {
		before--
	}
	if count == passes.batches {
		return false
	}
	switch {
	case kind == order.Forward:
		return (stage == 0 || ran[stage-1][order.Forward] > count) && (last || count < ran[after][order.Forward]+2)
	case kind == order.Weight:
		return back == order.Input && ran[stage][order.Input] > count
	case kind != back:
		return false
	}
	inputs := ran[stage][order.Forward]
	if !last {
		inputs = ran[stage+1][back]
	}
	return inputs > count && (stage == 0 || count < ran[before][back]+2)
}
