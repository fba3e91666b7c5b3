package stagememory_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/exhaustive"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
	"github.com/devmap-dev/devmap/planner/internal/stagememory"
)

// TestWeightBound: no cuts of an interleaved pipeline have a smaller largest share than its bound.
// Outputs, weights and devices differ.
func TestWeightBound(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(67, 68))
	near := 0
	for i := range randomproblem.Samples(120) {
		gpus, chunks := 2, 2
		if i%4 == 0 {
			chunks = 3
		}
		p := declaredPipeline(t, rng, gpus, chunks)
		if i%2 == 0 {
			p = recomputedPipeline(t, rng, gpus, chunks, "")
		}
		if i%8 == 0 {
			p = recomputedPipeline(t, rng, gpus, chunks, costmodel.OffloadAll)
		}
		bound := fixtures.Must(stagememory.WeightBound(randomproblem.Instance(t, &p)))(t)
		best := math.Inf(1)
		exhaustive.Cuts(len(p.Costs.Units), gpus*chunks, nil, func(cuts []int) {
			m := exhaustive.LoopedMap(&p, cuts, []int{0, 1}[:gpus])
			if m == nil {
				return
			}
			best = min(best, randomproblem.LargestShare(&p, m))
		})
		if bound > best*(1+1e-12) {
			t.Fatalf("%d: %+v: no cuts are said to be below %v, and some have %v", i, p.Costs.Workload, bound, best)
		}
		if bound > 0.8*best {
			near++
		}
	}
	if near < 6 {
		t.Errorf("%d bounds are within a fifth", near)
	}
}

// declaredPipeline returns an interleaved pipeline of units that differ in every figure of a model
// file.
func declaredPipeline(t *testing.T, rng *rand.Rand, gpus, chunks int) planner.Problem {
	t.Helper()
	n := gpus*chunks + rng.IntN(4)
	// The largest part is weights and states, activations, or one unit.
	weight, saved := randomproblem.Pick[int64](rng, 20, 200), randomproblem.Pick[int64](rng, 50, 300, 900)
	large := -1
	if rng.IntN(4) == 0 {
		large = rng.IntN(n)
	}
	layers := make([]modelgraph.Layer, n)
	for i := range layers {
		d := modelgraph.NotDeclared()
		d.ActivationBytes, d.WorkspaceBytes, d.OutputBytes = saved/2+rng.Int64N(saved), rng.Int64N(20), rng.Int64N(saved)
		params := weight/2 + rng.Int64N(weight)
		if i == large {
			params = 4000
		}
		layers[i] = modelgraph.Layer{Name: fmt.Sprintf("u%d", i), Declared: &d, Params: []modelgraph.Tensor{{Name: "own", Shape: []int64{params}, DType: modelgraph.BF16}}}
	}
	g := fixtures.Must(modelgraph.New("random", layers, nil))(t)
	m := int64(gpus) * (1 + rng.Int64N(3))
	w, err := estimate.Resolve(g, costmodel.Workload{
		Mode: randomproblem.Pick(rng, costmodel.Train, costmodel.Train, costmodel.Infer), Strategy: costmodel.Pipeline, World: int64(gpus), Schedule: costmodel.Interleaved, VirtualStages: int64(chunks),
		Batch: m, MicroBatches: m, Seq: 1, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW,
	})
	if err != nil {
		t.Fatal(err)
	}
	table := fixtures.Must(estimate.Table(g, w))(t)
	table.Comm = costmodel.Comm{} // NCCL's buffers are much larger than the rest
	topo := &costmodel.Topology{}
	for range gpus {
		topo.Devices = append(topo.Devices, costmodel.Device{CapacityBytes: 30_000 + rng.Int64N(3000), ContextBytes: rng.Int64N(2000), WorkspaceBytes: rng.Int64N(40)})
	}
	return planner.Problem{Graph: g, Costs: table, Topology: topo}
}

// recomputedPipeline returns an interleaved pipeline of a small Llama, with many tokens compared
// with its weights. Its blocks are recomputed from their inputs, or not. If some are offloaded, it is of
// devmap's engine.
func recomputedPipeline(t *testing.T, rng *rand.Rand, gpus, chunks int, offloaded string) planner.Problem {
	t.Helper()
	runtime, more := "", 0
	if offloaded != "" {
		runtime, more = costmodel.Devmap, 8 // more blocks than a device has sets
	}
	config := fmt.Sprintf(`{"model_type": "llama", "hidden_size": 64, "intermediate_size": %d, "num_hidden_layers": %d, "num_attention_heads": 4, "vocab_size": %d, "tie_word_embeddings": false}`,
		64+rng.IntN(100), gpus*chunks-2+rng.IntN(3)+more, 20+rng.IntN(100))
	m := int64(gpus) * (1 + rng.Int64N(3))
	g, table := randomproblem.Costs(t, []byte(config), costmodel.Workload{
		Runtime: runtime, OffloadActivations: offloaded,
		Mode: costmodel.Train, Strategy: costmodel.Pipeline, World: int64(gpus), Schedule: costmodel.Interleaved, VirtualStages: int64(chunks), Precision: costmodel.BF16True,
		Optimizer: costmodel.AdamW, Batch: m, MicroBatches: m, Seq: 64 << rng.Int64N(4), Recompute: randomproblem.Pick(rng, costmodel.RecomputeNone, costmodel.RecomputeFull, costmodel.RecomputeFull),
	})
	table.Comm = costmodel.Comm{}
	topo := &costmodel.Topology{}
	for range gpus {
		topo.Devices = append(topo.Devices, costmodel.Device{CapacityBytes: 4<<20 + rng.Int64N(1<<20), ContextBytes: rng.Int64N(1 << 16)})
	}
	return planner.Problem{Graph: g, Costs: table, Topology: topo}
}

// TestBareSaved: for each further micro-batch in flight, a stage needs at least the BareSaved bytes
// of its items, at any cuts.
func TestBareSaved(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(69, 70))
	tight := 0
	for i := range randomproblem.Samples(100) {
		const gpus = 3
		p := declaredPipeline(t, rng, gpus, 1)
		if i%2 == 0 {
			p = recomputedPipeline(t, rng, gpus, 1+i%3, "")
		}
		w := &p.Costs.Workload
		const few, more = 6, 12 // in flight: GPipe keeps all micro-batches
		w.Mode, w.Schedule, w.Batch, w.MicroBatches = costmodel.Train, costmodel.GPipe, more, few
		items, saved, err := stagememory.BareSaved(randomproblem.Instance(t, &p))
		if err != nil {
			t.Fatal(err)
		}
		first := 1 + rng.IntN(len(saved)-2)
		cuts := []int{0, first, first + 1 + rng.IntN(len(saved)-first-1), len(saved)}
		m := make(devicemap.Map, len(p.Costs.Units))
		for d := range gpus {
			for u := items[cuts[d]]; u < items[cuts[d+1]]; u++ {
				m[u] = devicemap.Device(d)
			}
		}
		before := devicemap.Predict(p.Costs, p.Topology, m)
		w.MicroBatches = more
		for d, after := range devicemap.Predict(p.Costs, p.Topology, m) {
			var want int64
			for _, s := range saved[cuts[d]:cuts[d+1]] {
				want += (more - few) * s
			}
			grown := after.Predicted.PeakAllocatedBytes - before[d].Predicted.PeakAllocatedBytes
			if grown < want {
				t.Fatalf("%d: stage %d of cuts %v grows by %d B with %d more in flight, and its units are said to save %d B", i, d, cuts, grown, more-few, want)
			}
			if 2*want > grown {
				tight++
			}
		}
	}
	if tight < 100 {
		t.Errorf("%d stages save less than twice as much", tight)
	}
}

// TestLoopedBounds compares with the best of all cuts: the bounds on an interleaved pipeline's
// largest share, and the result of a search that does not try all cuts.
func TestLoopedBounds(t *testing.T) {
	t.Parallel()
	loops, climbed := 0, 0
	for seed := range uint64(randomproblem.Samples(200)) {
		p, err := randomproblem.Pipeline(rand.New(rand.NewPCG(seed, 77)))
		if err != nil {
			t.Fatal(seed, err)
		}
		if p.Costs.Workload.Schedule != costmodel.Interleaved {
			continue
		}
		p.Objective = planner.Memory
		weights, run, found, err := stagememory.LoopedBounds(t.Context(), randomproblem.Instance(t, &p))
		var refused *planner.StageError
		if errors.As(err, &refused) {
			continue
		}
		if err != nil {
			t.Fatal(seed, err)
		}
		want := exhaustive.Pipeline(&p)
		if max(weights, run) > want.Share*(1+1e-12) {
			t.Fatalf("%d: bounds %v (weights) and %v (largest run), but the best of all maps is %v", seed, weights, run, want.Share)
		}
		if found < want.Share*(1-1e-12) {
			t.Fatalf("%d: found %v, below the best of all maps, %v", seed, found, want.Share)
		}
		loops++
		if found <= want.Share*(1+1e-9) {
			climbed++
		}
	}
	if loops < 20 || 10*climbed < 9*loops {
		t.Errorf("%d interleaved pipelines, of %d the best was found: too few", loops, climbed)
	}
}

// TestCounts compares the bound by numbers of blocks with the best of all cuts. The blocks follow
// other layers, alternate with them, or are alone between the ends.
func TestCounts(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(71, 72))
	bounds, found := 0, 0
	for i := range randomproblem.Samples(150) {
		gpus, chunks := 2+i%2, 2+i/2%2
		p := declaredPipeline(t, rng, gpus, chunks)
		if i%3 == 0 {
			p = recomputedPipeline(t, rng, gpus, chunks, "")
		} else {
			p = patterned(t, rng, p, gpus*chunks+rng.IntN(5), i%3 == 1)
		}
		bound, share, err := stagememory.Counts(t.Context(), randomproblem.Instance(t, &p))
		if err != nil {
			t.Fatal(err)
		}
		best := math.Inf(1)
		exhaustive.Cuts(len(p.Costs.Units), gpus*chunks, nil, func(cuts []int) {
			if m := exhaustive.LoopedMap(&p, cuts, []int{0, 1, 2}[:gpus]); m != nil {
				best = min(best, randomproblem.LargestShare(&p, m))
			}
		})
		if bound > best*(1+1e-12) || share < best*(1-1e-12) {
			t.Fatalf("%d: %+v: no cuts are said to be below %v, its own have %v, and the best has %v", i, p.Costs.Workload, bound, share, best)
		}
		if bound > .9*best {
			bounds++
		}
		if share <= bound*(1+1e-12) {
			found++
		}
	}
	if bounds < 50 || found < 15 {
		t.Errorf("%d bounds are within a tenth, and %d are the share of cuts", bounds, found)
	}
}

// patterned returns a pipeline of so many layers of a few kinds: some of one kind ahead of the
// others, or in turn with them.
func patterned(t *testing.T, rng *rand.Rand, p planner.Problem, count int, turns bool) planner.Problem {
	t.Helper()
	kinds, layers := p.Graph.Layers, []modelgraph.Layer(nil)
	others := rng.IntN(3)
	for i := range count {
		kind := 1
		switch {
		case i == 0:
			kind = 0
		case i == count-1:
			kind = len(kinds) - 1
		case turns && i%2 == 0 || !turns && i <= others:
			kind = 2
		}
		layer, declared := kinds[kind], *kinds[kind].Declared
		declared.OutputBytes = 40
		layer.Declared = &declared
		layer.Name, layer.Inputs, layer.InputLayers, layer.Unit, layer.UnitIndex = fmt.Sprintf("u%d", i), nil, nil, "", 0
		layers = append(layers, layer)
	}
	graph := fixtures.Must(modelgraph.New("patterned", layers, nil))(t)
	table := fixtures.Must(estimate.Table(graph, p.Costs.Workload))(t)
	table.Comm = costmodel.Comm{}
	return planner.Problem{Graph: graph, Costs: table, Topology: p.Topology}
}
