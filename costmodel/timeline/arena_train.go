package timeline

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// events are the buffers alive at each line of the device's program, other than throughout: from
// the line that first writes one to its last reader. A receive has at most the next pass's buffers,
// and a send the last one's, so passes and steps are all moments.
func (place *arena) events(emit func(stepEvent)) {
	emit(stepEvent{Change: place.throughout, What: "weights"})
	switch place.mode {
	case costmodel.Train:
		step := arenaStep{repeating: repeating{emit: emit}, place: place, ran: make([]bool, len(place.chunks)), began: make([]bool, len(place.chunks))}
		step.train()
	case costmodel.Infer:
		place.infer(emit)
	case costmodel.Load, costmodel.Serve:
	}
}

// arenaStep is a training step.
type arenaStep struct {
	repeating
	place *arena
	emit  func(stepEvent) // tell, made once
	ran   []bool          // by chunk: its gradients exist
	began []bool          // by chunk: those of its units with whole backwards exist
	lost  bool            // the losses are
}

func (step *arenaStep) train() {
	place := step.place
	step.emit = step.tell
	phases := order.Phases(place.schedule, place.rank)
	for i := range phases {
		step.run(&phases[i], step.pass)
	}
	// Squared norms travel from the last device to the first, their sum back; gradients of a tied
	// weight's other uses have arrived.
	step.emit(stepEvent{Change: buffers(place.tied)})
	slot := place.norms
	if place.rank >= place.schedule.Stages-1 {
		slot = 0
	}
	step.emit(stepEvent{Over: buffers(place.norms + slot), What: "optimizer step"})
	if place.rank == 0 {
		step.emit(stepEvent{Over: buffers(place.norms + costmodel.RegionAlign), What: "optimizer step"})
	}
}

func (step *arenaStep) pass(action order.Action) {
	if action.Chunk >= int64(len(step.place.chunks)) {
		return
	}
	switch piece := &step.place.chunks[action.Chunk]; {
	case piece.bare && action.Kind == order.Weight:
	case piece.bare && action.Kind.Sends():
		step.emit(stepEvent{Over: buffers(piece.out + piece.in), What: "backward of ", Layer: piece.units[0].Name})
	case piece.bare:
		step.emit(stepEvent{Over: buffers(piece.in + piece.out), What: "forward of ", Layer: piece.units[0].Name})
	case action.Kind == order.Forward:
		step.forth(piece)
	case action.Kind == order.Weight:
		step.learn(piece, int(action.Chunk))
	default:
		step.back(piece, int(action.Chunk), action.Kind == order.Backward)
	}
}

// forth is a chunk's forward. A unit writes its output into the next unit's kept input, or adds to
// it; the last one's is the outgoing message.
func (step *arenaStep) forth(piece *arenaChunk) {
	for i, unit := range piece.units {
		regions := &unit.Regions
		made := regions.Saved + regions.Late + regions.Result
		if regions.Result > 0 && step.lost {
			made -= regions.Result // the losses of all micro-batches are one buffer
		}
		step.lost = step.lost || regions.Result > 0
		var over, out costmodel.Memory
		over.Activations = regions.Forward
		if i == 0 {
			over.CommBuffers = piece.in
			if piece.entered {
				made += regions.Input
			}
		}
		if i == 0 || regions.Input > 0 { // else it adds to existing gradients
			to, keeps := savedAfter(piece.units[i+1:])
			made += to
			if !keeps {
				out.CommBuffers = piece.out
			}
		}
		step.emit(stepEvent{Change: add(activations(made), out, 1), Over: over, What: "forward of ", Layer: unit.Name})
		step.emit(stepEvent{Change: activations(-regions.Out())}) // it is in host memory
	}
	step.emit(stepEvent{Change: buffers(-piece.out)}) // it is sent
}

// savedAfter is the input that the next of these units keeps, if any does.
func savedAfter(units []*costmodel.Unit) (bytes int64, keeps bool) {
	for _, unit := range units {
		if unit.Regions.Input > 0 {
			return unit.Regions.Input, true
		}
	}
	return 0, false
}

// back is a chunk's backward, or its first half. One buffer has the gradient of each unit's output
// in turn, the last unit's too if it came in.
func (step *arenaStep) back(piece *arenaChunk, number int, whole bool) {
	var passed int64
	if len(piece.units) > 1 {
		passed = step.place.passed()
	}
	for i := len(piece.units) - 1; i >= 0; i-- {
		unit := piece.units[i]
		regions := &unit.Regions
		last := i == len(piece.units)-1
		var over costmodel.Memory
		if last {
			over.CommBuffers = piece.out
		}
		if !last {
			over.Activations = passed
		}
		step.emit(stepEvent{Change: activations(regions.Out())}) // it is back
		if regions.Remade > 0 {
			step.emit(stepEvent{Over: add(over, activations(regions.Forward), 1), What: "recompute of ", Layer: unit.Name})
		}
		over.Activations = passed + regions.Backward
		if i == 0 {
			over.CommBuffers += piece.in // the gradient that goes back
		}
		var made costmodel.Memory
		if whole {
			over.Activations += regions.Pending
		} else {
			made.Activations = regions.Pending
		}
		if !step.began[number] && !regions.Learns {
			made.Grads = regions.Grads
		}
		step.emit(stepEvent{Change: made, Over: over, What: "backward of ", Layer: unit.Name})
		step.emit(stepEvent{Change: activations(-endsWith(regions, whole))})
		if whole {
			var over costmodel.Memory
			over.Activations = regions.Pending
			if i > 0 {
				over.Activations += passed
			} else {
				over.CommBuffers = piece.in
			}
			step.learned(unit, number, over)
		}
	}
	step.began[number] = true
	step.ran[number] = step.ran[number] || whole
}

// endsWith are the saved bytes that end with a unit's backward, or with its first half. Moved ones
// leave for the second half.
func endsWith(regions *costmodel.Regions, whole bool) int64 {
	saved, late, _ := regions.Sets()
	if learns := whole && regions.Learns; regions.Moved > 0 && !learns {
		return saved + late
	}
	return saved
}

// learn is the second half of a chunk's backward: the gradients of its weights.
func (step *arenaStep) learn(piece *arenaChunk, number int) {
	for i := len(piece.units) - 1; i >= 0; i-- {
		regions := &piece.units[i].Regions
		if !regions.Learns {
			continue
		}
		if regions.Moved > 0 { // all of it comes again, and what is not late is not read
			_, late, _ := regions.Sets()
			step.emit(stepEvent{Change: activations(late), Over: activations(regions.Out() - late)})
		}
		step.learned(piece.units[i], number, costmodel.Memory{})
		step.emit(stepEvent{Change: activations(-regions.Pending)})
	}
	step.ran[number] = true
}

// learned is the second half of a unit's backward.
func (step *arenaStep) learned(unit *costmodel.Unit, number int, over costmodel.Memory) {
	regions := &unit.Regions
	if !regions.Learns {
		return
	}
	var made costmodel.Memory
	if !step.ran[number] {
		made.Grads = regions.Grads
	}
	over.Activations += regions.Learn
	step.emit(stepEvent{Change: made, Over: over, What: "gradients of ", Layer: unit.Name})
	_, late, _ := regions.Sets()
	step.emit(stepEvent{Change: activations(-late)})
}
