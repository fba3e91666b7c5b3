package compile

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// order sets every device's actions, and derives how many micro-batches each stage keeps in flight.
func (compiler *compiler) order(orders [][]order.Action) error {
	given := orders != nil
	if !given {
		orders = order.Engine(compiler.schedule(), compiler.rankOfStages(), compiler.trains())
	}
	if len(orders) != len(compiler.ranks) {
		return fmt.Errorf("%w: it is of %d ranks, and %d devices hold units", ErrOrder, len(orders), len(compiler.ranks))
	}
	for rank, device := range compiler.ranks {
		device.actions = orders[rank]
		switch err := compiler.follow(device); {
		case err != nil && given:
			return fmt.Errorf("%w: rank %d: %w", ErrOrder, rank, err)
		case err != nil:
			return fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	return nil
}

// schedule is the workload's schedule for these stages, interleaved if a device holds several.
func (compiler *compiler) schedule() costmodel.Schedule {
	chunks := 1
	for _, device := range compiler.ranks {
		chunks = max(chunks, len(device.stages))
	}
	schedule := costmodel.NewSchedule(&compiler.table.Workload, int64(len(compiler.ranks)), int64(chunks))
	if schedule.Kind != "" && chunks > 1 {
		schedule.Kind = costmodel.Interleaved
	}
	return schedule
}

func (compiler *compiler) rankOfStages() []int {
	ranks := make([]int, len(compiler.stages))
	for rank, device := range compiler.ranks {
		for _, stage := range device.stages {
			ranks[stage.number] = rank
		}
	}
	return ranks
}

// follow records the order of each stage's micro-batches, and the most that are between forward and
// backward. Every action must occur once, and a backward after its forward.
func (compiler *compiler) follow(device *device) error {
	progress := make([]progress, len(device.stages))
	for chunk := range progress {
		progress[chunk].done = make([]passes, compiler.microBatches)
	}
	for _, action := range device.actions {
		if action.Chunk < 0 || action.Chunk >= int64(len(device.stages)) || action.MicroBatch < 0 || action.MicroBatch >= int64(compiler.microBatches) {
			return fmt.Errorf("micro-batch %d of chunk %d is none of %d micro-batches of %d chunks", action.MicroBatch, action.Chunk, compiler.microBatches, len(device.stages))
		}
		if !progress[action.Chunk].run(device.stages[action.Chunk], action, compiler.trains()) {
			return fmt.Errorf("%s of micro-batch %d of chunk %d comes twice, or before its forward, or is of a mode that has none", direction(action.Kind == order.Backward), action.MicroBatch, action.Chunk)
		}
	}
	want := compiler.microBatches
	for chunk, stage := range device.stages {
		if len(stage.forwards) != want || compiler.trains() && len(stage.backwards) != want {
			return fmt.Errorf("chunk %d runs %d forwards and %d backwards of %d micro-batches", chunk, len(stage.forwards), len(stage.backwards), want)
		}
	}
	return nil
}

// progress is how far a stage has got: the passes of each micro-batch that have run, and how many
// micro-batches are between forward and backward.
type progress struct {
	done   []passes
	flying int
}

type passes uint8

const (
	forwardDone passes = iota + 1
	bothDone
)

// run records an action. It reports false if the action is repeated, comes too early or does not
// exist in this mode.
func (progress *progress) run(stage *stage, action order.Action, trains bool) bool {
	done, microBatch := &progress.done[action.MicroBatch], int32(action.MicroBatch)
	switch {
	case action.Kind == order.Forward && *done == 0:
		*done = forwardDone
		stage.forwards = append(stage.forwards, microBatch)
		progress.flying++
		stage.depth = max(stage.depth, progress.flying)
	case action.Kind == order.Backward && *done == forwardDone && trains:
		*done = bothDone
		stage.backwards = append(stage.backwards, microBatch)
		progress.flying--
	default:
		return false
	}
	return true
}

func direction(backward bool) string {
	if backward {
		return "the backward"
	}
	return "the forward"
}
