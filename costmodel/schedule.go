package costmodel

// ScheduleKind is the order in which a pipeline runs its micro-batches.
type ScheduleKind string

// The schedules of the contract.
const (
	OneFOneB    ScheduleKind = "1f1b"
	GPipe       ScheduleKind = "gpipe"
	Interleaved ScheduleKind = "interleaved"
	ZBH1        ScheduleKind = "zb-h1"
	ZBH2        ScheduleKind = "zb-h2"
	ZBV         ScheduleKind = "zb-v"
)
