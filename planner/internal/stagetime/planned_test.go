package stagetime

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
)

// randomPlanned returns a chain for devmap's own engine, and the times that the bounds use. The
// engine simulates it with slots per channel, and updates when it has all gradients.
func randomPlanned(rng *rand.Rand) (*pipeCase, *steptime.Ticks) {
	stages := 1 + rng.IntN(4)
	p := &pipeCase{items: stages + rng.IntN(4), schedule: costmodel.Schedule{
		Kind: []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe}[rng.IntN(2)], Stages: int64(stages), Chunks: 1, MicroBatches: 1 + rng.Int64N(9), AnyMicroBatches: true,
	}}
	table := &costmodel.Table{Workload: costmodel.Workload{
		Strategy: costmodel.Pipeline, Runtime: costmodel.Devmap, Mode: costmodel.Train, Schedule: p.schedule.Kind, MicroBatches: p.schedule.MicroBatches,
		Precision: costmodel.BF16True, Seq: 2,
	}}
	if p.train = rng.IntN(3) > 0; !p.train {
		table.Workload.Mode, table.Workload.NewTokens = costmodel.Infer, rng.Int64N(4)
	}
	seconds := func(most int) costmodel.Pass { return costmodel.Pass{Profiled: float64(rng.IntN(most)) / 1e12} }
	for range p.items {
		unit := costmodel.Unit{Work: costmodel.Work{Forward: seconds(8), Backward: seconds(16), Token: seconds(4), Output: rng.Int64N(5), Update: float64(rng.IntN(9))}}
		if rng.IntN(4) == 0 {
			unit.Work.Recompute = unit.Work.Forward
		}
		table.Units = append(table.Units, unit)
	}
	topo, slow := &costmodel.Topology{}, 1+float64(rng.IntN(4))
	for range stages {
		device := costmodel.Device{FLOPS: 1}
		device.LinkBytesPerSecond, device.BytesPerSecond = 1e12/slow, 1e12
		topo.Devices = append(topo.Devices, device)
	}
	p.cutter = &cutter{pipeCosts: &pipeCosts{tokens: float64(table.Workload.NewTokens)}}
	for device := range stages {
		costs := p.pipeCosts
		rows := make([][]float64, 5)
		to, from := make([]float64, p.items+1), make([]float64, p.items+1)
		for i := range rows {
			rows[i] = make([]float64, p.items+1)
		}
		for unit := range p.items {
			took := steptime.Unit(table, topo, device, unit)
			for i, value := range []float64{took.Forward, took.Backward, took.Token, took.Update, 0} {
				rows[i][unit+1] = rows[i][unit] + value
			}
			if device+1 < stages {
				to[unit+1] = topo.SendSeconds(device, device+1, table.Units[unit].Work.Output)
				from[unit+1] = topo.SendSeconds(device+1, device, table.Units[unit].Work.Output)
			}
		}
		costs.forward, costs.backward, costs.token, costs.update = append(costs.forward, rows[0]), append(costs.backward, rows[1]), append(costs.token, rows[2]), append(costs.update, rows[3])
		costs.issue, costs.issueBack = append(costs.issue, rows[4]), append(costs.issueBack, rows[4])
		p.to, p.from = append(p.to, to), append(p.from, from)
		p.fits = append(p.fits, slices.Repeat([]bool{true}, (p.items+1)*(p.items+1)))
	}
	return p, steptime.TicksOf(table, topo)
}

// TestPlannedBound compares the bounds with the steps of devmap's own engine.
func TestPlannedBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(53, 54))
	met := 0
	for i := range 2000 {
		p, ticks := randomPlanned(rng)
		s := &pipeSearch{cutter: p.cutter, pipeBound: newPipeBound(&stretchWatch{ctx: t.Context()}, p.schedule, p.train, p.cutter, p.items)}
		best := math.Inf(1)
		p.eachCuts(func(cuts []int) {
			var place []int
			for stage := range len(cuts) - 1 {
				place = append(place, slices.Repeat([]int{stage}, cuts[stage+1]-cuts[stage])...)
			}
			took, err := ticks.Seconds(place)
			if err != nil {
				t.Fatalf("%d: %+v, cuts %v: %v", i, p.schedule, cuts, err)
			}
			best = min(best, took)
			prefix := prefix{}
			for stage := range cuts {
				if got := s.below(prefix, stage, cuts[stage]); got > took*(1+1e-9) {
					t.Fatalf("%d: %+v, train %t, cuts %v: with %d stages cut the bound is %v, the step takes %v", i, p.schedule, p.train, cuts, stage, got, took)
				}
				if stage < len(cuts)-1 {
					prefix = prefix.with(stage, s.stage(p.cutter, stage, cuts[stage], cuts[stage+1]))
				}
			}
		})
		if s.root() > 0.999*best {
			met++
		}
	}
	if met < 500 {
		t.Errorf("the root is the best step in %d of 2000: too few", met)
	}
}
