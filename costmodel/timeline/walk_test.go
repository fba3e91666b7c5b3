package timeline_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// randomUnits returns random units as an engine makes them: training keeps no
// KV cache, inference saves nothing for backward and recomputes nothing.
func randomUnits(rng *rand.Rand, mode costmodel.Mode) []costmodel.Unit {
	size := func() int64 {
		if rng.IntN(4) == 0 {
			return 0
		}
		return rng.Int64N(1000)
	}
	units := make([]costmodel.Unit, rng.IntN(9))
	for i := range units {
		unit := &units[i]
		unit.Params, unit.Buffers, unit.Padding = size(), size(), size()
		unit.Products = rng.IntN(2) == 0
		for range rng.IntN(4) {
			memory := costmodel.LayerMemory{Layer: "l", Loss: rng.IntN(4) == 0}
			if mode == costmodel.Train {
				memory.Saved, memory.Grads = size(), size()
				memory.Backward = max(0, memory.Grads-memory.Saved) + size()
				memory.BackwardGrads = rng.Int64N(memory.Backward + 1)
			} else {
				memory.KV, memory.CacheGrowth, memory.UntilBodyEnd, memory.HeadPeak = size(), size(), size(), 4*size()
			}
			memory.Forward = memory.Saved + memory.KV + memory.UntilBodyEnd + size()
			unit.Layers = append(unit.Layers, memory)
		}
		if mode == costmodel.Train {
			unit.OptimizerState, unit.ResidentGrads, unit.StepTransient, unit.LastBackward = size(), size(), size(), size()
			if rng.IntN(2) == 0 {
				unit.Recompute = true
				for j := range unit.Layers {
					unit.Layers[j].RecomputeSaved = rng.Int64N(unit.Layers[j].Forward + 1)
				}
			}
			unit.CheckpointedOutput, unit.AutocastCopies = size(), size()
		}
	}
	return units
}

// TestWalkJudgesRun: the plain walk, the fold of runs and the O(1) query agree on every stretch.
func TestWalkJudgesRun(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	moments := map[string]int{}
	for range 2000 {
		mode := []costmodel.Mode{costmodel.Train, costmodel.Infer}[rng.IntN(2)]
		units := randomUnits(rng, mode)
		resident := timeline.Resident{Workspace: rng.Int64N(500), Output: rng.Int64N(3) * rng.Int64N(3000), OutputDropped: rng.IntN(3) == 0, LastGradients: rng.IntN(3) == 0}
		chain := timeline.Stretches(units)
		for a := range len(units) + 1 {
			for b := a; b <= len(units); b++ {
				var fold timeline.Summary
				var owned []*costmodel.Unit
				for i := a; i < b; i++ {
					fold = fold.Join(timeline.Of(&units[i]))
					owned = append(owned, &units[i])
				}
				if got := chain(a, b); got != fold {
					t.Fatalf("%s [%d, %d): the query gives %+v, the fold %+v", mode, a, b, got, fold)
				}
				walk := timeline.DeviceMap(mode, owned, resident).Peak()
				if got := timeline.DeviceMapSum(mode, owned, resident); got != walk.Memory.Total() {
					t.Fatalf("%s [%d, %d): the walk holds %d, the fold of its events %d", mode, a, b, walk.Memory.Total(), got)
				}
				if walk.Memory.Total() != fold.Peak(resident) {
					t.Fatalf("%s [%d, %d): the walk holds %d at %s, the run %d\n%+v", mode, a, b, walk.Memory.Total(), walk.At, fold.Peak(resident), units[a:b])
				}
				if memory := walk.Memory; min(memory.Params, memory.Grads, memory.OptimizerState, memory.Activations, memory.KVCache) < 0 {
					t.Fatalf("%s [%d, %d): a negative category in %+v", mode, a, b, memory)
				}
				moments[walk.At]++
			}
		}
	}
	for _, at := range []string{"forward of l", "loss forward", "end of forward", "recompute of l", "backward of l", "loss backward", "optimizer step", "last token in l"} {
		if moments[at] == 0 {
			t.Errorf("no peak at %q was drawn", at)
		}
	}
}

// TestJoin: runs are a monoid, and a device that holds more never peaks lower.
func TestJoin(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	resident := timeline.Resident{Workspace: 7, Output: 300}
	for range 2000 {
		mode := []costmodel.Mode{costmodel.Train, costmodel.Infer}[rng.IntN(2)]
		units := randomUnits(rng, mode)
		for len(units) < 3 {
			units = append(units, randomUnits(rng, mode)...)
		}
		resident.OutputDropped = rng.IntN(2) == 0
		summary, s, u := timeline.Of(&units[0]), timeline.Of(&units[1]), timeline.Of(&units[2])
		if left, right := summary.Join(s).Join(u), summary.Join(s.Join(u)); left != right {
			t.Fatalf("(rs)u %+v, r(su) %+v", left, right)
		}
		if summary.Join(timeline.Summary{}) != summary || (timeline.Summary{}).Join(summary) != summary {
			t.Fatalf("the empty run changes %+v", summary)
		}
		chain := timeline.Stretches(units)
		for a := range units {
			for b := a; b < len(units); b++ {
				peak := chain(a, b).Peak(resident)
				if wider := chain(a, b+1).Peak(resident); wider < peak {
					t.Fatalf("[%d, %d) holds %d, one more unit behind it %d", a, b, peak, wider)
				}
				if a > 0 && chain(a-1, b).Peak(resident) < peak {
					t.Fatalf("[%d, %d) holds %d, one more unit before it %d", a, b, peak, chain(a-1, b).Peak(resident))
				}
			}
		}
	}
}

// TestWalkFigures is one step computed by hand: weights 10 + 5, states 20, gradients that stay from
// backward, and the loss after two layers.
func TestWalkFigures(t *testing.T) {
	block := &costmodel.Unit{Products: true, Params: 10, OptimizerState: 20, Layers: []costmodel.LayerMemory{{Layer: "h", Saved: 100, Forward: 130, Backward: 40, BackwardGrads: 10, Grads: 10}}}
	head := &costmodel.Unit{Params: 5, Layers: []costmodel.LayerMemory{{Layer: "head", Saved: 50, Forward: 200, Backward: 170, BackwardGrads: 5, Grads: 5, Loss: true}}}
	got := timeline.DeviceMap(costmodel.Train, []*costmodel.Unit{block, head}, timeline.Resident{Workspace: 3, Output: 2}).Peak()
	want := timeline.Peak{At: "loss backward", Memory: costmodel.Memory{Params: 15, OptimizerState: 20, Workspace: 3, Activations: 100 + 50 + 2 + 165, Grads: 5}}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	// Generation: weights 10, a body with 30 of the embedding, a cache of 50 that grows by 40, and
	// 25 more in the last token; outputs of 9.
	embed := &costmodel.Unit{Params: 10, Layers: []costmodel.LayerMemory{{Layer: "embed", UntilBodyEnd: 30, Forward: 30}}}
	for grown, want := range map[int64]timeline.Peak{
		0:  {At: "forward of a", Memory: costmodel.Memory{Params: 10, Workspace: 3, KVCache: 50, Activations: 30 + 20}},
		40: {At: "last token in a", Memory: costmodel.Memory{Params: 10, Workspace: 3, KVCache: 90, Activations: 25}},
	} {
		body := &costmodel.Unit{Products: true, Layers: []costmodel.LayerMemory{{Layer: "a", KV: 50, CacheGrowth: grown, HeadPeak: 25, Forward: 70}}}
		if got := timeline.DeviceMap(costmodel.Infer, []*costmodel.Unit{embed, body}, timeline.Resident{Workspace: 3, Output: 9}).Peak(); got != want {
			t.Errorf("grown by %d: %+v, want %+v", grown, got, want)
		}
	}
	// Nothing but lookups: no workspace. Outputs that the caller drops but for
	// the loss are gone when the gradients come.
	lookup := &costmodel.Unit{Params: 10, Padding: 2, Layers: []costmodel.LayerMemory{{Layer: "embed", Saved: 8, Forward: 8, Backward: 40, BackwardGrads: 40, Grads: 40}}}
	got = timeline.DeviceMap(costmodel.Train, []*costmodel.Unit{lookup}, timeline.Resident{Workspace: 3, Output: 20, OutputDropped: true}).Peak()
	want = timeline.Peak{At: "backward of embed", Memory: costmodel.Memory{Params: 10, Workspace: 2, Activations: 8, Grads: 40}}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := timeline.DeviceMap(costmodel.Load, []*costmodel.Unit{block, head}, timeline.Resident{}).Peak(); got.Memory.Total() != 35 || got.At != "weights" {
		t.Errorf("load: %+v", got)
	}
}

// TestStreamedLate: the parameters of a unit that left are on the device while
// it runs, when caches are complete too; nothing of them stays.
func TestStreamedLate(t *testing.T) {
	unit := costmodel.Unit{Name: "u", Params: 100, Padding: 7, Layers: []costmodel.LayerMemory{
		{Layer: "attention", Weights: 60, Forward: 70, KV: 50, CacheGrowth: 40, HeadPeak: 25},
		{Layer: "mlp", Weights: 40, Forward: 30},
	}}
	s := unit.Streamed()
	resident := timeline.Resident{}
	peak := func(u *costmodel.Unit) int64 {
		p := timeline.DeviceMap(costmodel.Infer, []*costmodel.Unit{u}, resident).Peak()
		return p.Memory.Total()
	}
	// At home: 107 of parameters, caches of 50 that grow by 40, and the 25 of a
	// token on top. Streamed: the caches, the token's 25 and the 60 that it reads.
	if got, want := peak(&unit), int64(107+50+40+25); got != want {
		t.Errorf("at home %d B, want %d", got, want)
	}
	if got, want := peak(&s), int64(50+40+25+60); got != want {
		t.Errorf("streamed %d B, want %d", got, want)
	}
	if s.Layers[1].HeadPeak != 0 || unit.Layers[0].HeadPeak != 25 {
		t.Errorf("a layer that is not late has %d B then, and the unit at home %d", s.Layers[1].HeadPeak, unit.Layers[0].HeadPeak)
	}
	first := costmodel.Unit{Name: "first", Params: 100, Layers: []costmodel.LayerMemory{{Layer: "mlp", Weights: 100, Forward: 30}}}
	if out := first.Streamed(); peak(&out) != 30+100 {
		t.Errorf("streamed, a unit whose forward takes 30 B and reads 100 holds %d B", peak(&out))
	}
	if timeline.Of(&s).Peak(resident) != peak(&s) {
		t.Errorf("the closed form says %d B, the walk %d", timeline.Of(&s).Peak(resident), peak(&s))
	}
}

// TestLeast: every figure counts, future ones too.
func TestLeast(t *testing.T) {
	var one, two timeline.Summary
	for i := range reflect.TypeFor[timeline.Summary]().NumField() {
		value, b := reflect.ValueOf(&one).Elem().Field(i), reflect.ValueOf(&two).Elem().Field(i)
		if value.Kind() == reflect.Bool {
			b.SetBool(true)
			continue
		}
		value.SetInt(1)
		b.SetInt(2)
	}
	if got := one.Least(two); got != one {
		t.Errorf("%+v of %+v and %+v", got, one, two)
	}
	if got := two.Least(one); got != one {
		t.Errorf("%+v of %+v and %+v", got, two, one)
	}
}
