package simulate_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/simulate"
)

// TestShared: the kernels of devices on one GPU alternate. All on one take what all of their kernels
// take, as there is always one that can begin: 3 ticks a stage and micro-batch. Each on
// its own are in the order of the simulation else.
func TestShared(t *testing.T) {
	for _, kind := range []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe} {
		for _, stages := range []int64{2, 3, 4} {
			for _, micro := range []int64{1, 2, 7} {
				prog := schedule(costmodel.Schedule{Kind: kind, Stages: stages, Chunks: 1, MicroBatches: micro}, 1, costs{forward: 1, backward: 2})
				alone := run(t, prog)
				for gpus := int64(1); gpus <= stages; gpus++ {
					on := make([]int, stages)
					for device := range on {
						on[device] = 7 * (device % int(gpus))
					}
					result, err := simulate.Shared(prog, on)
					if err != nil {
						t.Fatal(err)
					}
					if gpus == 1 && result.Makespan != 3*micro*stages || gpus == stages && result.Makespan != alone.Makespan || result.Makespan < alone.Makespan {
						t.Errorf("%v of %d stages and %d micro-batches on %d GPUs: %d ticks, alone %d", kind, stages, micro, gpus, result.Makespan, alone.Makespan)
					}
					apart(t, prog, result, on)
				}
			}
		}
	}
	if _, err := simulate.Shared(schedule(costmodel.Schedule{Kind: costmodel.GPipe, Stages: 2, Chunks: 1, MicroBatches: 1}, 1, costs{forward: 1, backward: 2}), []int{0}); err == nil {
		t.Error("one GPU for two devices was taken")
	}
}

// apart holds that no two instructions compute on a GPU at once, and that each of the
// longest chain begins when the one before it ends.
func apart(t *testing.T, prog *program.Program, result *simulate.Result, on []int) {
	t.Helper()
	for i := range prog.Instrs {
		for j := range i {
			one, other := &prog.Instrs[i], &prog.Instrs[j]
			if one.Op.Runs() && other.Op.Runs() && on[one.Device] == on[other.Device] && result.Start[i] < result.End[j] && result.Start[j] < result.End[i] {
				t.Errorf("%s and %s run at once", prog.Line(int32(i)), prog.Line(int32(j)))
			}
		}
	}
	for i := 1; i < len(result.Path); i++ {
		if result.Start[result.Path[i]] != result.End[result.Path[i-1]] {
			t.Errorf("%s does not begin when %s ends", prog.Line(result.Path[i]), prog.Line(result.Path[i-1]))
		}
	}
}
