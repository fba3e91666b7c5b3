package timeline

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// infer runs the prompts of all micro-batches, then token by token the new ones. All tokens after
// the first cost the same, and the last makes no ids. Micro-batches differ only by the ids that
// wait, one more each, so infer skips those between the second and the last.
func (place *arena) infer(emit func(stepEvent)) {
	step := arenaInfer{place: place, emit: emit, waiting: map[int64]bool{}}
	actions, passed := place.forwards()
	last := place.schedule.MicroBatches - 1
	for _, action := range actions {
		if passed > 0 && action.MicroBatch == last && place.embedsOwn() {
			emit(stepEvent{Change: buffers(passed * place.ids)})
			passed = 0
		}
		step.pass(action, false, true)
	}
	tokens := min(place.table.Workload.NewTokens, 3)
	for token := range tokens {
		for _, action := range actions {
			step.pass(action, true, token < tokens-1)
		}
	}
}

// forwards are the rank's, in order, and how many micro-batches were passed over.
func (place *arena) forwards() (out []order.Action, passed int64) {
	short, last := place.schedule, place.schedule.MicroBatches-1
	if last > 2 && (place.schedule.Kind == "" || !place.embedsOwn()) {
		short.MicroBatches, passed = 3, last-2
	}
	for _, action := range order.Of(short, place.rank) {
		if action.Kind == order.Forward && action.Chunk < int64(len(place.chunks)) {
			if passed > 0 && action.MicroBatch == 2 {
				action.MicroBatch = last
			}
			out = append(out, action)
		}
	}
	return out, passed
}

// embedsOwn: the device makes the ids that it embeds.
func (place *arena) embedsOwn() bool {
	return place.ids > 0 && place.contains(place.ends.first) && place.contains(place.ends.last)
}

// arenaInfer is a pass after another.
type arenaInfer struct {
	place   *arena
	emit    func(stepEvent)
	waiting map[int64]bool // micro-batches with ids, on the device that both makes and embeds them
}

// pass is a chunk's, of a micro-batch; next: its ids are embedded again.
func (step *arenaInfer) pass(action order.Action, decode, next bool) {
	place, piece := step.place, &step.place.chunks[action.Chunk]
	what, in, out := "forward of ", piece.in, piece.out
	if decode {
		what, in, out = "decode of ", piece.inToken, piece.outToken
	}
	if piece.bare {
		step.emit(stepEvent{Over: buffers(in + out), What: what, Layer: piece.units[0].Name})
		return
	}
	var passed int64
	if len(piece.units) > 1 {
		passed = place.passed()
	}
	for i, unit := range piece.units {
		over := costmodel.Memory{Activations: passed + unit.Regions.Forward + unit.Regions.Result}
		if decode {
			over.Activations += unit.Regions.Decode - unit.Regions.Forward
		}
		if i == 0 {
			over.CommBuffers = in
		}
		var made, gone costmodel.Memory
		if i == len(piece.units)-1 {
			over.CommBuffers += out
			if next && piece.contains(place.ends.last) {
				over.CommBuffers += step.make(action.MicroBatch, &made)
			}
		}
		if i == 0 && decode && piece.contains(place.ends.first) {
			over.CommBuffers += step.embed(action.MicroBatch, &gone)
		}
		step.emit(stepEvent{Change: made, Over: over, What: what, Layer: unit.Name})
		step.emit(stepEvent{Change: gone})
	}
}

// make has the head write ids: they are sent at once, or wait here.
func (step *arenaInfer) make(batch int64, made *costmodel.Memory) (sent int64) {
	if !step.place.contains(step.place.ends.first) {
		return step.place.ids
	}
	if !step.waiting[batch] {
		made.CommBuffers = step.place.ids
	}
	step.waiting[batch] = true
	return 0
}

// embed has the embedding read ids, after which they are gone.
func (step *arenaInfer) embed(batch int64, gone *costmodel.Memory) (received int64) {
	if !step.waiting[batch] {
		return step.place.ids
	}
	delete(step.waiting, batch)
	gone.CommBuffers = -step.place.ids
	return 0
}
