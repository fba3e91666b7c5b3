package costmodel

import (
	"strings"

	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// ScheduleKind is the order in which a pipeline runs its micro-batches.
type ScheduleKind string

// The schedules of the contract. The last four split each backward into the gradient of its input
// and those of its weights: ZB-H1 and ZBV of "Zero bubble pipeline parallelism" (arXiv 2401.10241),
// V-Half and V-Min of "Pipeline parallelism with controllable memory" (arXiv 2405.15362).
const (
	OneFOneB    ScheduleKind = "1f1b"
	GPipe       ScheduleKind = "gpipe"
	Interleaved ScheduleKind = "interleaved"
	ZBH1        ScheduleKind = "zb-h1"
	ZBV         ScheduleKind = "zbv"
	VHalf       ScheduleKind = "v-half"
	VMin        ScheduleKind = "v-min"
	// AutoSchedule leaves the order to the planner.
	AutoSchedule ScheduleKind = "auto"
)

// ScheduleKinds are all schedules, in the order of the help.
func ScheduleKinds() []ScheduleKind {
	return []ScheduleKind{OneFOneB, GPipe, Interleaved, ZBH1, ZBV, VHalf, VMin}
}

// Split reports whether a schedule of the kind splits each backward in two.
func (kind ScheduleKind) Split() bool {
	return kind == ZBH1 || kind.Vee() && !kind.OwnOrder() || kind.OwnOrder() && strings.ContainsAny(string(kind), "IiWw")
}

// Vee reports whether a schedule of the kind has two chunks on each rank, in the form of a V: rank
// r holds chunks r and 2p − 1 − r.
func (kind ScheduleKind) Vee() bool {
	_, vee := value.OwnOrder(string(kind))
	return vee || kind == ZBV || kind == VHalf || kind == VMin
}

// Loops reports whether a rank holds several chunks, which go round the ranks: chunk c of rank r is
// stage c·Stages + r.
func (kind ScheduleKind) Loops() bool {
	return kind == Interleaved || kind.OwnOrder() && !kind.Vee() && strings.ContainsAny(string(kind), "fbiw")
}

// Chunked reports whether a rank holds several chunks.
func (kind ScheduleKind) Chunked() bool { return kind.Loops() || kind.Vee() }

// Stage returns the stage of a rank's chunk: c·Stages + r, or that of a V.
func (schedule Schedule) Stage(rank, chunk int64) int64 {
	if schedule.Kind.Vee() && chunk%2 == 1 {
		rank = schedule.Stages - 1 - rank
	}
	return chunk*schedule.Stages + rank
}

// Place returns the rank and the chunk of a stage. It undoes [Schedule.Stage].
func (schedule Schedule) Place(stage int64) (rank, chunk int64) {
	rank, chunk = stage%schedule.Stages, stage/schedule.Stages
	if schedule.Kind.Vee() && chunk%2 == 1 {
		rank = schedule.Stages - 1 - rank
	}
	return rank, chunk
}

// known returns the names of all schedules for an error.
func known() string {
	var names []string
	for _, kind := range ScheduleKinds() {
		names = append(names, string(kind))
	}
	return strings.Join(names, ", ")
}

// Runs returns the number of runs of units along the chain that lie on one rank each. A run is a
// stage, except that the last rank of a V has one run for its two stages.
func (schedule Schedule) Runs() int64 {
	if schedule.Kind.Vee() {
		return 2*schedule.Stages - 1
	}
	return schedule.Stages * schedule.Chunks
}

// RunRank returns the rank of a run.
func (schedule Schedule) RunRank(run int64) int64 {
	if schedule.Kind.Vee() && run >= schedule.Stages {
		return 2*schedule.Stages - 2 - run
	}
	return run % schedule.Stages
}

// Halves cuts the run of a V's last rank into its two stages.
func (run Interval) Halves() (first, second Interval) {
	middle := run.First + (run.End-run.First+1)/2
	return Interval{run.First, middle}, Interval{middle, run.End}
}

// Middle returns the unit that begins the second stage of a V's last rank, for units at these
// places. It is −1 for other schedules, and for places in another form.
func Middle[place ~int | ~int32](kind ScheduleKind, places []place) int {
	if !kind.Vee() {
		return -1
	}
	var runs []Interval
	for unit := range places {
		if unit == 0 || places[unit] != places[unit-1] {
			runs = append(runs, Interval{First: unit})
		}
		runs[len(runs)-1].End = unit + 1
	}
	if len(runs)%2 == 0 {
		return -1
	}
	_, second := runs[len(runs)/2].Halves()
	return second.First
}
