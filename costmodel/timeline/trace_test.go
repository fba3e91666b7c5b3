package timeline_test

import (
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// TestTrace: a followed step has the peak of the step, and what is live there adds up to it by category.
func TestTrace(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		mode := []costmodel.Mode{costmodel.Train, costmodel.Infer}[rng.IntN(2)]
		units := randomUnits(rng, mode)
		var owned []*costmodel.Unit
		for i := range units {
			units[i].Name = string(rune('a' + i))
			owned = append(owned, &units[i])
		}
		resident := timeline.Resident{Workspace: rng.Int64N(500), Output: rng.Int64N(3) * rng.Int64N(3000), OutputDropped: rng.IntN(3) == 0, LastGradients: rng.IntN(3) == 0}
		checkTrace(t, timeline.DeviceMap(mode, owned, resident))
	}
}

func checkTrace(t *testing.T, step timeline.Step) {
	t.Helper()
	peak, trace := step.Peak(), step.Trace()
	if got := trace.Moments[trace.Peak].Peak; got != peak {
		t.Fatalf("the trace's peak is %+v, the step's %+v", got, peak)
	}
	var live costmodel.Memory
	for _, holding := range trace.Live {
		for i, part := range timeline.Parts {
			*part(&live) += *part(&holding.Memory)
			if *part(&holding.Memory) < 0 && *part(&peak.Memory) >= 0 {
				t.Fatalf("%s has %+v (category %d)", holding.Owner, holding.Memory, i)
			}
		}
	}
	if live != peak.Memory {
		t.Fatalf("%+v is live, and the peak is %+v", live, peak.Memory)
	}
}

// TestTraceOfMany: a pipeline's trace has the step's peak and a limited length, however many micro-batches
// there are.
func TestTraceOfMany(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	table := &costmodel.Table{Units: randomUnits(rng, costmodel.Train), Workload: costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.Pipeline}}
	for i := range table.Units {
		table.Units[i].Name = string(rune('a' + i))
	}
	for _, batches := range []int64{4, 64, 1 << 15, 1 << 40} {
		place := timeline.Rank{
			Schedule: costmodel.Schedule{Kind: costmodel.OneFOneB, Stages: 4, Chunks: 1, MicroBatches: batches},
			Chunks:   []costmodel.Interval{{First: 0, End: len(table.Units)}},
		}
		table.Workload.MicroBatches = batches
		step := timeline.RankStep(table, place, &costmodel.Device{})
		checkTrace(t, step)
		if count, every := len(step.Trace().Moments), batches <= 64; every && count < int(2*batches) || count > 5000 {
			t.Errorf("%d micro-batches: %d moments", batches, count)
		}
	}
}
