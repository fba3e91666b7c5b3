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
	stages  map[int64]bool         // in any cell
	seen    map[order.Action]cell  // by stage, in place of a chunk
	count   map[order.Action]int64 // number of cells, for any micro-batch
	moved   map[int64]bool         // stages on another rank, each reported once
	faults  []string
	more    int
}

func newCSVSchedule(ranks []int, microBatches int64, train bool) *csvSchedule {
	schedule := &csvSchedule{ranks: ranks, microBatches: microBatches, train: train, seen: map[order.Action]cell{}, count: map[order.Action]int64{}, moved: map[int64]bool{}, stages: map[int64]bool{}}
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
	schedule.stages[at.stage] = true
	switch {
	case at.stage >= int64(len(schedule.ranks)):
		schedule.fault("%s: there are stages 0 to %d", at.place(), len(schedule.ranks)-1)
		return
	case at.microBatch >= schedule.microBatches:
		schedule.fault("%s: there are micro-batches 0 to %d", at.place(), schedule.microBatches-1)
		return
	case at.kind != order.Forward && !schedule.train:
		schedule.fault("%s: a backward, and the plan is for inference", at.place())
		return
	}
	key := order.Action{Kind: at.kind, Chunk: at.stage, MicroBatch: at.microBatch}
	before, twice := schedule.seen[key]
	if !twice {
		schedule.seen[key] = at
		schedule.count[order.Action{Kind: at.kind, Chunk: at.stage}]++
	}
	switch {
	case twice && before.rank != at.rank:
		schedule.fault("%s: stage %d runs on two ranks: it is in row %d, cell %d too", at.place(), at.stage, before.rank+1, before.column+1)
	case twice:
		schedule.fault("%s: twice: it is in cell %d too", at.place(), before.column+1)
	case at.rank != schedule.ranks[at.stage]:
		schedule.elsewhere(at)
	default:
		if why := schedule.early(key); why != "" {
			schedule.fault("%s: %s", at.place(), why)
			return
		}
		key.Chunk = schedule.chunks[at.stage]
		schedule.actions[at.rank] = append(schedule.actions[at.rank], key)
	}
}

// early says why an action cannot come yet, or next to the others of its micro-batch.
func (schedule *csvSchedule) early(key order.Action) string {
	has := func(kind order.Kind) bool {
		key.Kind = kind
		_, seen := schedule.seen[key]
		return seen
	}
	switch kind := key.Kind; {
	case kind == order.Weight && !has(order.Input) && !has(order.Backward):
		return "a W before its I: the gradients of weights need the gradient of the input first"
	case kind == order.Input && !has(order.Forward):
		return "an I before its F: the input's half of a backward needs its forward first"
	case kind == order.Backward && !has(order.Forward):
		return "a backward before its forward"
	case kind == order.Backward && (has(order.Input) || has(order.Weight)), kind > order.Backward && has(order.Backward):
		return "a backward both whole (B) and in halves (I, W)"
	}
	return ""
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
	if last := len(schedule.ranks) - 1; rows > 1 && schedule.ranks[last] == 0 && len(schedule.stages)%2 == 1 {
		schedule.fault("stages: %d, an odd number: a V has two on each rank", len(schedule.stages))
	}
	for stage := range schedule.ranks {
		schedule.allOf(int64(stage), order.Forward)
		switch whole := schedule.count[order.Action{Kind: order.Backward, Chunk: int64(stage)}]; {
		case !schedule.train:
		case whole == 0 && schedule.count[order.Action{Kind: order.Input, Chunk: int64(stage)}] > 0:
			schedule.allOf(int64(stage), order.Input)
			schedule.allOf(int64(stage), order.Weight)
		default:
			schedule.allOf(int64(stage), order.Backward)
		}
	}
	if schedule.more > 0 {
		schedule.faults = append(schedule.faults, fmt.Sprintf("… and %d more", schedule.more))
	}
}

// allOf reports the first missing action of a kind. A stage may run some backwards whole and others
// in halves: a whole one stands for both.
func (schedule *csvSchedule) allOf(stage int64, kind order.Kind) {
	count := func(kind order.Kind) int64 { return schedule.count[order.Action{Kind: kind, Chunk: stage}] }
	has := func(kind order.Kind, batch int64) bool {
		_, seen := schedule.seen[order.Action{Kind: kind, Chunk: stage, MicroBatch: batch}]
		return seen
	}
	missing, first, mixed := schedule.microBatches-count(kind), int64(0), kind == order.Backward && count(order.Input) > 0
	if mixed {
		missing -= min(count(order.Input), count(order.Weight))
	}
	if missing <= 0 {
		return
	}
	for has(kind, first) || mixed && has(order.Input, first) && has(order.Weight, first) {
		first++
	}
	if mixed && has(order.Input, first) {
		kind = order.Weight
	}
	more := ""
	if missing > 1 {
		more = fmt.Sprintf(", and %d more like it", missing-1)
	}
	schedule.fault("row %d: %q is missing%s", schedule.ranks[stage]+1, fmt.Sprintf("%d%v%d", stage, kind, first), more)
}
