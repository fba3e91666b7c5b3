package torchcsv

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel/order"
)

// maxFaults limits the listed faults: a file for another plan has one in every cell.
const maxFaults = 20

// csvSchedule collects a file's cells, checked against a pipeline.
type csvSchedule struct {
	ranks        []int // of each stage
	chunks       []int64
	microBatches int64
	train        bool

	actions [][]order.Action
	seen    map[order.Action]cell  // by stage, in place of a chunk
	count   map[order.Action]int64 // number of cells, for any micro-batch
	moved   map[int64]bool         // stages on another rank, each reported once
	faults  []string
	more    int
}

func newCSVSchedule(ranks []int, microBatches int64, train bool) *csvSchedule {
	schedule := &csvSchedule{ranks: ranks, microBatches: microBatches, train: train, seen: map[order.Action]cell{}, count: map[order.Action]int64{}, moved: map[int64]bool{}}
	pending := map[int]int64{}
	for _, rank := range ranks {
		schedule.chunks = append(schedule.chunks, pending[rank])
		pending[rank]++
	}
	schedule.actions = make([][]order.Action, len(pending))
	return schedule
}

func (schedule *csvSchedule) fault(format string, args ...any) {
	if len(schedule.faults) < maxFaults {
		schedule.faults = append(schedule.faults, fmt.Sprintf(format, args...))
		return
	}
	schedule.more++
}

// add adds the next cell of a rank.
func (schedule *csvSchedule) add(at cell) {
	switch {
	case at.stage >= int64(len(schedule.ranks)):
		schedule.fault("%s: there are stages 0 to %d", at.place(), len(schedule.ranks)-1)
		return
	case at.microBatch >= schedule.microBatches:
		schedule.fault("%s: there are micro-batches 0 to %d", at.place(), schedule.microBatches-1)
		return
	case at.backward && !schedule.train:
		schedule.fault("%s: a backward, and the plan is for inference", at.place())
		return
	}
	key := order.Action{Backward: at.backward, Chunk: at.stage, MicroBatch: at.microBatch}
	before, twice := schedule.seen[key]
	if !twice {
		schedule.seen[key] = at
		schedule.count[order.Action{Backward: at.backward, Chunk: at.stage, MicroBatch: 0}]++
	}
	_, forward := schedule.seen[order.Action{Backward: false, Chunk: at.stage, MicroBatch: at.microBatch}]
	switch {
	case twice && before.rank != at.rank:
		schedule.fault("%s: stage %d runs on two ranks: it is in row %d, cell %d too", at.place(), at.stage, before.rank+1, before.column+1)
	case twice:
		schedule.fault("%s: twice: it is in cell %d too", at.place(), before.column+1)
	case at.rank != schedule.ranks[at.stage]:
		schedule.elsewhere(at)
	case at.backward && !forward:
		schedule.fault("%s: a backward before its forward", at.place())
	default:
		schedule.actions[at.rank] = append(schedule.actions[at.rank], order.Action{Backward: at.backward, Chunk: schedule.chunks[at.stage], MicroBatch: at.microBatch})
	}
}

// elsewhere reports, once, a stage in another row than in the plan.
func (schedule *csvSchedule) elsewhere(at cell) {
	if !schedule.moved[at.stage] {
		schedule.fault("%s: the plan runs stage %d on rank %d, row %d", at.place(), at.stage, schedule.ranks[at.stage], schedule.ranks[at.stage]+1)
	}
	schedule.moved[at.stage] = true
}

// complete reports missing actions: the first micro-batch of each stage and pass.
func (schedule *csvSchedule) complete(rows int) {
	if rows != len(schedule.actions) {
		schedule.fault("rows: %d, and the plan has %d ranks, a row each", rows, len(schedule.actions))
	}
	for stage := range schedule.ranks {
		schedule.allOf(int64(stage), false)
		if schedule.train {
			schedule.allOf(int64(stage), true)
		}
	}
	if schedule.more > 0 {
		schedule.faults = append(schedule.faults, fmt.Sprintf("… and %d more", schedule.more))
	}
}

func (schedule *csvSchedule) allOf(stage int64, backward bool) {
	missing := schedule.microBatches - schedule.count[order.Action{Backward: backward, Chunk: stage, MicroBatch: 0}]
	if missing == 0 {
		return
	}
	first := order.Action{Backward: backward, Chunk: stage, MicroBatch: 0}
	for _, ok := schedule.seen[first]; ok; _, ok = schedule.seen[first] {
		first.MicroBatch++
	}
	text := fmt.Sprintf("%dF%d", stage, first.MicroBatch)
	if backward {
		text = fmt.Sprintf("%dB%d", stage, first.MicroBatch)
	}
	more := ""
	if missing > 1 {
		more = fmt.Sprintf(", and %d more like it", missing-1)
	}
	schedule.fault("row %d: %q is missing%s", schedule.ranks[stage]+1, text, more)
}
