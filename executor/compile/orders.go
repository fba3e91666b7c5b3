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
	if schedule.Kind != "" && chunks > 1 && !schedule.Kind.Chunked() {
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
		if !device.has(action, compiler.microBatches) {
			return fmt.Errorf("micro-batch %d of chunk %d is none of %d micro-batches of %d chunks", action.MicroBatch, action.Chunk, compiler.microBatches, len(device.stages))
		}
		if action.Kind > order.Backward && !compiler.splits() {
			return fmt.Errorf("micro-batch %d of chunk %d has a backward in two halves, and the plan has whole ones: --schedule %s splits them", action.MicroBatch, action.Chunk, costmodel.ZBH1)
		}
		if !progress[action.Chunk].run(device.stages[action.Chunk], action, compiler.trains()) {
			return fmt.Errorf("%s of micro-batch %d of chunk %d comes twice, or before what it needs, or is of a mode that has none", passName(action.Kind), action.MicroBatch, action.Chunk)
		}
	}
	want := compiler.microBatches
	for chunk, stage := range device.stages {
		if len(stage.forwards) != want || compiler.trains() && len(stage.backwards) != want {
			return fmt.Errorf("chunk %d runs %d forwards and %d backwards of %d micro-batches", chunk, len(stage.forwards), len(stage.backwards), want)
		}
		if learned := progress[chunk].learned; compiler.trains() && learned != want {
			return fmt.Errorf("chunk %d makes the gradients of weights of %d micro-batches of %d", chunk, learned, want)
		}
		stage.depth = order.Depths(int64(len(device.stages)), order.Phase{Actions: device.actions, Times: 1})[chunk]
	}
	return nil
}

// has reports that an action names a chunk of the device and a micro-batch of the step.
func (device *device) has(action order.Action, microBatches int) bool {
	return action.Chunk >= 0 && action.Chunk < int64(len(device.stages)) && action.MicroBatch >= 0 && action.MicroBatch < int64(microBatches)
}

// progress is how far a stage has got: the passes of each micro-batch that have run, and of how
// many the gradients of weights are made.
type progress struct {
	done    []passes
	learned int
}

type passes uint8

const (
	forwardDone passes = iota + 1
	inputDone
	bothDone
)

// run records an action. It reports false if the action is repeated, comes too early or does not
// exist in this mode.
func (progress *progress) run(stage *stage, action order.Action, trains bool) bool {
	done, microBatch := &progress.done[action.MicroBatch], int32(action.MicroBatch)
	before := [...]passes{order.Forward: 0, order.Backward: forwardDone, order.Input: forwardDone, order.Weight: inputDone}[action.Kind]
	if *done != before || action.Kind != order.Forward && !trains {
		return false
	}
	switch action.Kind {
	case order.Forward:
		*done = forwardDone
		stage.forwards = append(stage.forwards, microBatch)
	case order.Backward, order.Input:
		*done = inputDone
		stage.backwards = append(stage.backwards, microBatch)
	case order.Weight:
	}
	if action.Kind.Ends() {
		*done = bothDone
		progress.learned++
	}
	return true
}

// splits reports whether the plan has room for a backward in two halves.
func (compiler *compiler) splits() bool {
	return compiler.trains() && compiler.table.Workload.Schedule.Split()
}

func passName(kind order.Kind) string {
	return [...]string{order.Forward: "the forward", order.Backward: "the backward", order.Input: "the input's half of the backward", order.Weight: "the weights' half of the backward"}[kind]
}
