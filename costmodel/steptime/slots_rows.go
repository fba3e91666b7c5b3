package steptime

import (
	"math"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// rows gives every rank its rows of jobs.
func (line *line) rows() {
	owned := make([][]*lineStage, len(line.ranks))
	chunks := 1
	for i := range line.stages {
		stage := &line.stages[i]
		owned[stage.rank] = append(owned[stage.rank], stage)
		chunks = max(chunks, len(owned[stage.rank]))
	}
	schedule := costmodel.NewSchedule(&line.table.Workload, int64(len(line.ranks)), int64(chunks))
	if chunks > 1 && !schedule.Kind.Chunked() {
		schedule.Kind = costmodel.Interleaved
	}
	all, split := line.phases(schedule), schedule.Kind.Split()
	for rank := range line.ranks {
		phases := all[rank]
		of := func(forward func(*lineStage) *job, back bool) []row {
			return rowsOf(phases, func(action order.Action) *job {
				switch {
				case action.Chunk >= int64(len(owned[rank])) || action.Kind != order.Forward && !back:
					return nil
				case action.Kind == order.Weight:
					return &owned[rank][action.Chunk].learn
				case action.Kind == order.Backward && split:
					return &owned[rank][action.Chunk].whole
				case action.Kind.Sends():
					return &owned[rank][action.Chunk].backward
				}
				return forward(owned[rank][action.Chunk])
			})
		}
		rows := of(func(stage *lineStage) *job { return &stage.forward }, line.train)
		if tokens := line.table.Workload.NewTokens; tokens > 0 {
			decodes := of(func(stage *lineStage) *job { return &stage.decode }, false)
			rows = append(rows, repeated(decodes, tokens-1)...)
			rows = append(rows, of(func(stage *lineStage) *job { return &stage.final }, false)...)
		}
		line.ranks[rank].rows = rows
		line.ranks[rank].untilRow = math.MaxInt64
	}
}

// repeated are rows that a rank runs so many times one after the other, as one.
func repeated(rows []row, times int64) []row {
	if times == 0 {
		return nil
	}
	out := row{times: times}
	for _, row := range rows {
		for range row.times {
			out.jobs = append(out.jobs, row.jobs...)
		}
	}
	return []row{out}
}

// rowsOf are the rows of a rank's jobs, without actions that have none: backwards in inference, and
// missing stages.
func rowsOf(phases []order.Phase, of func(order.Action) *job) []row {
	actions := 0
	for i := range phases {
		actions += len(phases[i].Actions)
	}
	jobs, rows := make([]*job, 0, actions), make([]row, 0, len(phases))
	for i := range phases {
		begin := len(jobs)
		for _, action := range phases[i].Actions {
			if now := of(action); now != nil {
				jobs = append(jobs, now)
			}
		}
		if len(jobs) > begin {
			rows = append(rows, row{jobs[begin:], phases[i].Times})
		}
	}
	return rows
}
