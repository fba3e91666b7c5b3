package compile

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// order says what every device does, action by action, and from it what each
// stage keeps: how many micro-batches are in flight.
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

// schedule is the workload's on the stages that there are: where a device holds
// several, interleaved.
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

// follow notes the order of each stage's micro-batches, and the most whose
// forward has run and whose backward has not. Every action must be there once,
// and a backward behind its forward.
func (compiler *compiler) follow(device *device) error {
	const (
		forward  = 1
		backward = 2
	)
	done := make([]uint8, len(device.stages)*compiler.microBatches)
	flying := make([]int, len(device.stages))
	for _, action := range device.actions {
		if action.Chunk < 0 || action.Chunk >= int64(len(device.stages)) || action.MicroBatch < 0 || action.MicroBatch >= int64(compiler.microBatches) {
			return fmt.Errorf("micro-batch %d of chunk %d, where there are %d micro-batches and %d chunks", action.MicroBatch, action.Chunk, compiler.microBatches, len(device.stages))
		}
		stage, at := device.stages[action.Chunk], &done[int(action.Chunk)*compiler.microBatches+int(action.MicroBatch)]
		switch {
		case !action.Backward && *at == 0:
			*at = forward
			stage.forwards = append(stage.forwards, int32(action.MicroBatch))
			flying[action.Chunk]++
			stage.depth = max(stage.depth, flying[action.Chunk])
		case action.Backward && *at == forward && compiler.trains():
			*at = backward
			stage.backwards = append(stage.backwards, int32(action.MicroBatch))
			flying[action.Chunk]--
		default:
			return fmt.Errorf("%s of micro-batch %d of chunk %d comes twice, or before its forward, or is of a mode that has none", direction(action.Backward), action.MicroBatch, action.Chunk)
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

func direction(backward bool) string {
	if backward {
		return "the backward"
	}
	return "the forward"
}
