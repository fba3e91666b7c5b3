package order

import (
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

var splits = []costmodel.ScheduleKind{costmodel.ZBH1, costmodel.ZBV, costmodel.VHalf, costmodel.VMin}

func splitSchedule(kind costmodel.ScheduleKind, ranks, batches int64) costmodel.Schedule {
	schedule := costmodel.Schedule{Kind: kind, Stages: ranks, Chunks: 1, MicroBatches: batches}
	if kind.Vee() {
		schedule.Chunks = 2
	}
	return schedule
}

func rowsOf(schedule costmodel.Schedule) [][]Action {
	out := make([][]Action, schedule.Stages)
	for rank := range out {
		out[rank] = Of(schedule, int64(rank))
	}
	return out
}

// figures returns the units that the schedule lasts beyond a rank's own work, and the most chunks
// that a rank keeps. Each action occurs once, F before I before W.
func figures(t *testing.T, schedule costmodel.Schedule) (idle, alive int64) {
	t.Helper()
	rows := rowsOf(schedule)
	for rank, row := range rows {
		seen, flying := map[Action]bool{}, int64(0)
		for _, action := range row {
			before := action
			switch action.Kind {
			case Forward:
				flying++
				alive = max(alive, flying)
			case Input, Weight:
				before.Kind--
				if action.Kind == Input {
					before.Kind = Forward
				} else {
					flying--
				}
				if !seen[before] {
					t.Fatalf("%+v rank %d: %+v without %+v", schedule, rank, action, before)
				}
			case Backward:
				flying--
				if rank > 0 {
					t.Fatalf("%+v rank %d: a whole backward", schedule, rank)
				}
			}
			if seen[action] || action.MicroBatch >= schedule.MicroBatches {
				t.Fatalf("%+v rank %d: %+v twice, or of no micro-batch", schedule, rank, action)
			}
			seen[action] = true
		}
		work := len(row) // a whole backward counts as its halves
		for _, action := range row {
			if action.Kind == Backward {
				work++
			}
		}
		if int64(work) != 3*schedule.Chunks*schedule.MicroBatches || flying != 0 {
			t.Fatalf("%+v rank %d: %d actions, %d chunks left", schedule, rank, len(row), flying)
		}
		length := int64(0)
		for _, phase := range Phases(schedule, int64(rank)) {
			length += int64(len(phase.Actions))
		}
		if length > 3*schedule.Chunks*enough(schedule) {
			t.Errorf("%+v rank %d: %d actions in its phases", schedule, rank, length)
		}
	}
	long := span(schedule, rows)
	if long < 0 {
		t.Fatalf("%+v: the ranks wait for each other", schedule)
	}
	return long - 3*schedule.Chunks*schedule.MicroBatches, alive
}

// TestSplitFigures: bubbles and memory of the table in the sources, for F, I and W of one unit.
// 1F1B waits 3(p−1) units of a rank's whole work, 6(p−1) of a chunk's, and keeps p micro-batches.
func TestSplitFigures(t *testing.T) {
	t.Parallel()
	for ranks := int64(1); ranks <= 8; ranks++ {
		for batches := int64(1); batches <= 64; batches++ {
			for _, kind := range splits {
				schedule := splitSchedule(kind, ranks, batches)
				idle, alive := figures(t, schedule)
				var mostIdle, mostAlive int64
				full := ranks // micro-batches that fill the pipeline
				switch kind {
				case costmodel.ZBH1: // B/3: 2401.10241 table 2, (p − 1)(F + I − W)
					mostIdle, mostAlive = ranks-1, min(ranks, batches)
				case costmodel.ZBV: // 0 beyond the way to the last rank
					mostIdle, mostAlive, full = ranks-1, min(2*ranks, 2*batches), 2*ranks-1
				case costmodel.VHalf: // B/2; the micro-batches are whole units of time
					mostIdle, mostAlive = 3*(ranks-1)+2, ranks+2
				case costmodel.VMin: // 2B/3
					mostIdle, mostAlive = 4*(ranks-1), 2*((ranks+2)/3)+2
				case costmodel.OneFOneB, costmodel.GPipe, costmodel.Interleaved, costmodel.AutoSchedule: // not in splits
				}
				exact := kind == costmodel.ZBH1 || kind == costmodel.ZBV
				if alive > mostAlive || batches >= full && (idle > mostIdle || exact && (idle != mostIdle || alive != mostAlive)) {
					t.Errorf("%s, p %d, m %d: waits %d units, %d alive; want %d, %d", kind, ranks, batches, idle, alive, mostIdle, mostAlive)
				}
				if batches == 64 {
					t.Logf("%-6s p %d: waits %d of 1F1B's %d, keeps %d of %d", kind, ranks, idle, 3*schedule.Chunks*(ranks-1), alive, schedule.Chunks*ranks)
				}
			}
		}
	}
}

// TestSplitRepeats: many micro-batches run the same orders as are made for all of them at once.
func TestSplitRepeats(t *testing.T) {
	t.Parallel()
	for ranks := int64(1); ranks <= 6; ranks++ {
		for _, batches := range []int64{enough(splitSchedule(costmodel.ZBV, ranks, 1)) + 1, 70, 200} {
			schedule := splitSchedule(costmodel.ZBV, ranks, batches)
			for rank := range ranks {
				if got, want := Of(schedule, rank), zbV(schedule, rank); !slices.Equal(got, want) {
					t.Errorf("%+v rank %d: %v, want %v", schedule, rank, got, want)
				}
			}
			schedule.Kind, schedule.Chunks = costmodel.ZBH1, 1
			for rank := range ranks {
				if got, want := Of(schedule, rank), zbH1(schedule, rank); !slices.Equal(got, want) {
					t.Errorf("%+v rank %d: %v, want %v", schedule, rank, got, want)
				}
			}
		}
		for _, kind := range []costmodel.ScheduleKind{costmodel.VHalf, costmodel.VMin} {
			few := splitSchedule(kind, ranks, 60)
			idle, alive := figures(t, few)
			few.MicroBatches = 512
			if manyIdle, manyAlive := figures(t, few); manyIdle != idle || manyAlive != alive {
				t.Errorf("%s, p %d: waits %d units and %d alive for 512 micro-batches, %d and %d for 60", kind, ranks, manyIdle, manyAlive, idle, alive)
			}
		}
	}
}
