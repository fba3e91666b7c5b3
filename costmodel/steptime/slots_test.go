package steptime

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// randomTable is a random table and a topology. Times are small, so that many are equal, or large.
func randomTable(random *rand.Rand, devices, units int) (*costmodel.Table, *costmodel.Topology) {
	most := []int64{3, 20, 1 << 40}[random.IntN(3)]
	pass := func() costmodel.Pass { return costmodel.Pass{Profiled: float64(random.Int64N(most)) / perSecond} }
	table := &costmodel.Table{Workload: costmodel.Workload{Strategy: costmodel.Pipeline, Runtime: costmodel.Devmap, Mode: costmodel.Train, Precision: costmodel.BF16True, Seq: 1 + random.Int64N(3), Batch: 1}}
	for unit := range units {
		next := costmodel.Unit{}
		if unit > 0 && random.IntN(6) == 0 {
			next.Regions.Passes = true
			next.Work.Output = table.Units[unit-1].Work.Output
		} else {
			next.Work.Forward, next.Work.Backward, next.Work.Token = pass(), pass(), pass()
			if random.IntN(3) == 0 {
				next.Work.Recompute = next.Work.Forward
			}
			next.Work.Output = 256 * random.Int64N(20)
			next.Regions.Weights = 256 * random.Int64N(30)
		}
		table.Units = append(table.Units, next)
	}
	// The ends of the line run kernels.
	for i := range table.Units {
		regions := &table.Units[i].Regions
		regions.Passes = regions.Passes && 0 < i && i < units-1
		if !regions.Passes {
			regions.Input = 256 * random.Int64N(3)
		}
	}
	if owner := random.IntN(units); owner < units-1 && !table.Units[owner].Regions.Passes && !table.Units[units-1].Regions.Passes {
		table.Units[units-1].Regions.Tied = []costmodel.Tie{{Owner: owner, Weights: 512, Grads: 256 * random.Int64N(9)}}
	}
	topo := &costmodel.Topology{}
	for range devices {
		device := costmodel.Device{CapacityBytes: 1, FLOPS: 1}
		device.LinkBytesPerSecond = 256 * perSecond / float64(1+random.Int64N(most))
		device.BytesPerSecond = 256 * perSecond / float64(1+random.Int64N(9))
		topo.Devices = append(topo.Devices, device)
	}
	for from := range devices {
		if to := (from + 1) % devices; to != from && random.IntN(2) == 0 {
			topo.Links = append(topo.Links, costmodel.Link{From: from, To: to, BytesPerSecond: 256 * perSecond / float64(1+random.Int64N(9)), LatencySeconds: float64(random.Int64N(5)) / perSecond})
		}
	}
	return table, topo
}

// cutUp gives every run of a placement a unit at least.
func cutUp(random *rand.Rand, units, runs, devices int) []int {
	cuts := random.Perm(units - 1)[:runs-1]
	slices.Sort(cuts)
	place, run := make([]int, units), 0
	for unit := range place {
		if run < len(cuts) && unit > cuts[run] {
			run++
		}
		place[unit] = run % devices
	}
	return place
}

// TestSlots checks the simulation against the obvious form, on pipelines of
// every schedule and device maps, in training, inference and generation.
func TestSlots(t *testing.T) {
	simulated := map[string]int{}
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 11))
		devices := 1 + random.IntN(5)
		kind := []costmodel.ScheduleKind{costmodel.GPipe, costmodel.OneFOneB, costmodel.Interleaved, ""}[random.IntN(4)]
		runs := devices
		if kind == costmodel.Interleaved && devices > 1 || kind == "" && devices > 1 {
			runs = devices * (1 + random.IntN(3))
		}
		units := runs + random.IntN(runs+3)
		table, topo := randomTable(random, devices, units)
		workload := &table.Workload
		workload.Schedule, workload.MicroBatches = kind, 1+random.Int64N(9)
		if kind == "" {
			workload.Strategy = costmodel.DeviceMap
			table.Units[units-1].Regions.Tied = nil // ties are on one device
		}
		if mode := random.IntN(3); mode > 0 {
			workload.Mode = costmodel.Infer
			workload.NewTokens = int64(mode-1) * (1 + random.Int64N(4))
		}
		place := cutUp(random, units, runs, devices)
		ticks := TicksOf(table, topo)
		got, want := ticks.step(place), referenceStep(ticks, place)
		if got != want {
			t.Fatalf("seed %d: %s of %d micro-batches in %s with %d tokens on %v: %d ticks, want %d", seed, kind, workload.MicroBatches, workload.Mode, workload.NewTokens, place, got, want)
		}
		if want < 0 {
			t.Fatalf("seed %d: %s of %d micro-batches on %v: it waits for itself", seed, kind, workload.MicroBatches, place)
		}
		simulated[fmt.Sprint(kind, workload.Mode, workload.NewTokens > 0)]++
	}
	if len(simulated) != 12 {
		t.Errorf("played %v", simulated)
	}
}

// TestLongSlots: skipped rows match the simulation, and steps with any number of micro-batches are fast.
func TestLongSlots(t *testing.T) {
	passed := 0
	for seed := range uint64(600) {
		random := rand.New(rand.NewPCG(seed, 12))
		devices := 1 + random.IntN(5)
		runs := devices
		kind := []costmodel.ScheduleKind{costmodel.GPipe, costmodel.OneFOneB, costmodel.Interleaved}[random.IntN(3)]
		if kind == costmodel.Interleaved && devices > 1 {
			runs = devices * (1 + random.IntN(3))
		}
		units := runs + random.IntN(runs+3)
		table, topo := randomTable(random, devices, units)
		workload := &table.Workload
		workload.Schedule, workload.MicroBatches = kind, 1+random.Int64N(600)
		if mode := random.IntN(3); mode > 0 {
			workload.Mode = costmodel.Infer
			workload.NewTokens = int64(mode-1) * (1 + random.Int64N(300))
			if mode == 2 {
				workload.MicroBatches = 1 + random.Int64N(10)
			}
		}
		place := cutUp(random, units, runs, devices)
		ticks := TicksOf(table, topo)
		plain := ticks.line(place)
		plain.simulate()
		long := ticks.line(place)
		long.repeats()
		passed += long.passed
		for rank := range plain.ranks {
			if got, want := long.ranks[rank].clock, plain.ranks[rank].clock; got != want {
				t.Fatalf("seed %d: %s of %d micro-batches in %s with %d tokens on %v: rank %d ends at %d, want %d", seed, kind, workload.MicroBatches, workload.Mode, workload.NewTokens, place, rank, got, want)
			}
		}
		if got, want := long.ties(place), plain.ties(place); got != want {
			t.Fatalf("seed %d: tied gradients are there at %d, want %d", seed, got, want)
		}
	}
	if passed < 100 {
		t.Errorf("only %d rows were passed over", passed)
	}
}

// TestEndlessSlots: two thousand million micro-batches compute as fast as a few, and each further
// one takes as much as earlier ones.
func TestEndlessSlots(t *testing.T) {
	table, topo := randomTable(rand.New(rand.NewPCG(1, 13)), 4, 9)
	for _, kind := range []costmodel.ScheduleKind{costmodel.GPipe, costmodel.OneFOneB, costmodel.Interleaved} {
		step := func(count int64) int64 {
			table.Workload.Schedule, table.Workload.MicroBatches = kind, count
			return TicksOf(table, topo).step([]int{0, 0, 1, 1, 2, 2, 2, 3, 3})
		}
		const period = 7200 // of any few micro-batches that repeat themselves
		few, more, many := step(period), step(2*period), step(period<<18)
		if want := more + (more-few)*(1<<18-2); more <= few || many != want {
			t.Errorf("%s: %d, %d, and %d in place of %d", kind, few, more, many, want)
		}
	}
}

// TestManyGenerate: the extrapolated time is nearly proportional, and as fast to compute.
func TestManyGenerate(t *testing.T) {
	table, topo := randomTable(rand.New(rand.NewPCG(2, 13)), 3, 7)
	place := []int{0, 0, 0, 1, 1, 2, 2}
	table.Workload.Mode, table.Workload.Schedule, table.Workload.NewTokens = costmodel.Infer, costmodel.GPipe, 3
	step := func(count int64) float64 {
		table.Workload.MicroBatches = count
		seconds, err := TicksOf(table, topo).Seconds(place)
		if err != nil {
			t.Fatal(err)
		}
		return seconds
	}
	simulated := func(count int64) float64 {
		table.Workload.MicroBatches = count
		ticks := TicksOf(table, topo)
		return ticks.seconds(ticks.line(place).step(place))
	}
	if got, want := step(manyGenerate+1000), simulated(manyGenerate+1000); got < want*0.999 || got > want*1.001 || want == 0 {
		t.Errorf("%v s, want about %v", got, want)
	}
	if got, want := step(1<<31), step(1<<20)*(1<<11); got < want*0.999 || got > want*1.001 {
		t.Errorf("%v s, want about %v", got, want)
	}
}
