package simulate_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/simulate"
)

// TestOneFOneB checks 1F1B schedules to the tick against the zero-bubble authors' heuristic
// (sail-sg/zero-bubble-pipeline-parallelism, zb.py initial_solution). One set has forwards of 1 and
// backwards of 2. The other has, in units of 0.05, backwards of 1.2 + 0.9 and a message of 0.05.
func TestOneFOneB(t *testing.T) {
	equal, unequal := costs{forward: 1, backward: 2}, costs{forward: 20, backward: 42, latency: 1}
	rows := []struct {
		p, m     int64
		took     costs
		makespan int64
		bubble   string
	}{
		{2, 4, equal, 15, "0.2000"},
		{2, 8, equal, 27, "0.1111"},
		{4, 4, equal, 21, "0.4286"},
		{4, 8, equal, 33, "0.2727"},
		{4, 16, equal, 57, "0.1579"},
		{4, 32, equal, 105, "0.0857"},
		{8, 16, equal, 69, "0.3043"},
		{8, 32, equal, 117, "0.1795"},
		{8, 64, equal, 213, "0.0986"},
		{4, 8, unequal, 698, "0.2894"},
		{4, 16, unequal, 1206, "0.1774"},
		{8, 32, unequal, 2486, "0.2019"},
	}
	for _, row := range rows {
		kind := costmodel.Schedule{Kind: costmodel.OneFOneB, Stages: row.p, Chunks: 1, MicroBatches: row.m}
		result := run(t, schedule(kind, 2, row.took))
		if got := fmt.Sprintf("%.4f", result.Bubble(0)); result.Makespan != row.makespan || got != row.bubble {
			t.Errorf("p %d, m %d, %v: %d ticks, bubble %s; want %d, %s", row.p, row.m, row.took, result.Makespan, got, row.makespan, row.bubble)
		}
	}
}

// TestClosedForms: with equal stages and no transfer times, the closed forms of Narayanan et al.
// (SC 2021, §2.2.1) hold. All stages idle the fraction `(p−1)/(m+p−1)` of the step. The
// micro-batches in flight are `min(p−s, m)` or m, and their saved bytes are the peak.
func TestClosedForms(t *testing.T) {
	for _, kind := range []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe} {
		for p := int64(1); p <= 8; p++ {
			for m := int64(1); m <= 64; m++ {
				closedForms(t, costmodel.Schedule{Kind: kind, Stages: p, Chunks: 1, MicroBatches: m})
			}
		}
	}
}

func closedForms(t *testing.T, kind costmodel.Schedule) {
	t.Helper()
	p, m := kind.Stages, kind.MicroBatches
	prog := schedule(kind, 1, costs{forward: 1, backward: 2})
	result := run(t, prog)
	if result.Makespan != 3*(m+p-1) {
		t.Errorf("%v: %d ticks, want %d", kind, result.Makespan, 3*(m+p-1))
	}
	for stage, device := range result.Devices {
		flight := m
		if kind.Kind == costmodel.OneFOneB {
			flight = min(p-int64(stage), m)
		}
		if device.Computing != 3*m || int64(device.InFlight) != flight {
			t.Errorf("%v stage %d: computes %d ticks with %d in flight, want %d with %d", kind, stage, device.Computing, device.InFlight, 3*m, flight)
		}
		if saved := highest(prog, result, stage, program.Saved); saved != flight {
			t.Errorf("%v stage %d: %d saved at once, want %d", kind, stage, saved, flight)
		}
	}
}

// highest is the most bytes of a class that are live at once, found from the
// times of all accesses.
func highest(prog *program.Program, result *simulate.Result, device int, class program.Class) int64 {
	type change struct{ time, bytes int64 }
	first, last := map[int32]int64{}, map[int32]int64{}
	for i := prog.Devices[device].First; i < prog.Devices[device].End; i++ {
		for _, access := range prog.Accesses[prog.Instrs[i].FirstAccess:prog.Instrs[i].EndAccess] {
			if access.Mode == program.Write {
				first[access.Buffer] = result.Start[i]
			}
			last[access.Buffer] = result.End[i]
		}
	}
	var changes []change
	for buffer := range first {
		if is := &prog.Buffers[buffer]; is.Class == class {
			changes = append(changes, change{first[buffer], is.Bytes}, change{last[buffer], -is.Bytes})
		}
	}
	slices.SortFunc(changes, func(one, other change) int {
		return cmp.Or(cmp.Compare(one.time, other.time), cmp.Compare(one.bytes, other.bytes))
	})
	most, sum := int64(0), int64(0)
	for _, is := range changes {
		sum += is.bytes
		most = max(most, sum)
	}
	return most
}

func run(t *testing.T, prog *program.Program) *simulate.Result {
	t.Helper()
	result, err := simulate.Run(prog)
	if err != nil {
		t.Fatal(err)
	}
	return result
}
