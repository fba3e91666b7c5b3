package timeline_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// twoBlocks is an embedding, two blocks and a head, of round sizes. TestSharded has the bytes alive
// at each moment of a step, added up by hand.
func twoBlocks() *costmodel.Table {
	block := func(name string) costmodel.Unit {
		return costmodel.Unit{Name: name, Params: 20, OptimizerState: 40, Output: 2, Layers: []costmodel.LayerMemory{
			{Layer: name, Saved: 30, Forward: 35, Backward: 12, BackwardGrads: 8, Grads: 8},
		}}
	}
	gathered := func(name string, unit int) costmodel.Group {
		return costmodel.Group{Name: name, Units: []int{unit}, Gathered: 40, Buffer: 41, CopyIn: 10, Reduce: 80, Reduced: 20, LastGrad: 1}
	}
	return &costmodel.Table{
		Workload: costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.FSDP, MicroBatches: 1},
		Units: []costmodel.Unit{
			{Name: "embed", Params: 10, Output: 2, Layers: []costmodel.LayerMemory{{Layer: "embed", Saved: 1, Forward: 3, Backward: 5, BackwardGrads: 4, Grads: 4}}},
			block("h.0"), block("h.1"),
			{Name: "head", Params: 10, Output: 99, Layers: []costmodel.LayerMemory{{Layer: "head", Saved: 50, Forward: 70, Backward: 45, BackwardGrads: 4, Grads: 4, Loss: true}}},
		},
		Groups: []costmodel.Group{
			{Name: "root", Units: []int{0, 3}, Root: true, RemainsGathered: true, Gathered: 100, Buffer: 100, CopyIn: 25, Reduce: 200, Reduced: 50, LastGrad: 4},
			gathered("h.0", 1), gathered("h.1", 2),
		},
	}
}

// TestSharded works a step out by hand. Above 140 of weights and states:
//
//	moment               root  buffers  gathered  saved  gradients  reduce  more  sum
//	copy-out of h.0       100   100+41        40      1                        2  424
//	loss forward          100       41               61                       70  412
//	prefetch for loss     100    41+10              111                           402
//	loss backward         100       41              111                       45  437
//	prefetch from h.1     100    41+10        40     61          4             2  398
//	copy-out of h.0       100       41        40     31       4+20      80     2  458
//	reduce-scatter, root                                   4+40+50     200        434
func TestSharded(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*costmodel.Table)
		want   int64
		at     string
	}{
		{"a step", func(*costmodel.Table) {}, 458, "gather of h.0"},
		{"inference", func(table *costmodel.Table) { table.Workload.Mode = costmodel.Infer }, 424, "gather of h.0"},
		{"weights alone", func(table *costmodel.Table) { table.Workload.Mode = costmodel.Load }, 140, "weights"},
		{"a large loss", func(table *costmodel.Table) { table.Units[3].Layers[0].Backward += 100 }, 537, "loss backward"},
		{"large casts", func(table *costmodel.Table) { table.Groups[1].CopyIn, table.Groups[2].CopyIn = 200, 200 }, 592, "gather of h.1"},
		{"a large root", func(table *costmodel.Table) { table.Groups[0].Reduce += 100 }, 534, "reduce-scatter of root"},
		{"a large step", func(table *costmodel.Table) { table.Units[0].StepTransient = 300 }, 140 + 90 + 300, "optimizer step"},
		{"reduction of h.1", func(table *costmodel.Table) { table.Groups[2].LastGrad, table.Groups[2].Reduced = 8, 70 }, 458 + 50, "gather of h.0"},
		{"blocks stay gathered", func(table *costmodel.Table) {
			table.Groups[1].RemainsGathered, table.Groups[2].RemainsGathered = true, true
		}, 412 + 80, "loss forward"},
		// The sharded gradients of the first micro-batch, 90, exist throughout.
		{"accumulation", func(table *costmodel.Table) { table.Workload.MicroBatches = 2 }, 458 + 90 - 20, "gather of h.0"},
		{"accumulation, all-reduce", func(table *costmodel.Table) {
			table.Workload.MicroBatches, table.Workload.Strategy = 2, costmodel.HSDP
		}, 458 + 90, "gather of h.0"},
		{"nothing trained in a block", func(table *costmodel.Table) {
			table.Groups[2].Reduce, table.Groups[2].Reduced, table.Groups[2].LastGrad = 0, 0, 0
			table.Units[2].Layers[0].Grads, table.Units[2].Layers[0].BackwardGrads = 0, 0
		}, 437, "loss backward"},
	} {
		table := twoBlocks()
		c.change(table)
		peak := replica(t, table)
		if peak.Memory.Total() != c.want || peak.At != c.at {
			t.Errorf("%s: %d at %q, want %d at %q (%+v)", c.name, peak.Memory.Total(), peak.At, c.want, c.at, peak.Memory)
		}
	}
	want := costmodel.Memory{Params: 60, OptimizerState: 80, Grads: 4 + 20, Activations: 31 + 2, CommBuffers: 100 + 41 + 40 + 80}
	if peak := replica(t, twoBlocks()); peak.Memory != want {
		t.Errorf("%+v, want %+v", peak.Memory, want)
	}
}

// TestShardedChunks works out losses of chunks by hand: torchtitan's, which
// reduces the head's gradient in forward, and torchtune's, whose head is
// gathered for each. Above 140 of weights and states, and 100 of the root:
//
//	moment             buffers  gathered  saved  gradients  reduce  more  sum
//	loss forward                      40     66                      295  641
//	reduction, forward                40     66   20+80         80    55  581
//	chunk's gather       41+41        40     61                           423
//	backward of head                  40    111                      100  491
//	first chunk             41        40     61   60+120                   562
func TestShardedChunks(t *testing.T) {
	headOf := func(group costmodel.Group, layer costmodel.LayerMemory) *costmodel.Table {
		table := twoBlocks()
		group.Name, group.Units, group.Gathered, group.Buffer, group.CopyIn, group.Reduce, group.Reduced = "head", []int{3}, 40, 41, 10, 4, 1
		table.Groups[0].Units = []int{0}
		table.Groups = append(table.Groups, group)
		layer.Layer = "head"
		table.Units[3].Layers, table.Units[3].Output = []costmodel.LayerMemory{layer}, 0
		return table
	}
	titan := costmodel.LayerMemory{Saved: 5, Forward: 6, LossForward: 300, LossAlive: 60, Loss: true}
	small := titan
	small.LossForward = 100
	reduces := costmodel.Group{RemainsGathered: true, HeadReduce: 80, HeadReduced: 20}
	zeroed := headOf(reduces, small)
	zeroed.ZeroesGradients = true
	tune := costmodel.LayerMemory{Saved: 50, Forward: 20, LossForward: 60, LossBackward: 10, HeadBackward: 100, HeadGrads: 12, LossFrees: 25, Grads: 4, Loss: true}
	repeats := costmodel.Group{Repeats: true}
	wide := tune
	wide.Grads = 60
	for _, c := range []struct {
		table *costmodel.Table
		want  int64
		at    string
	}{
		{headOf(reduces, titan), 641, "loss forward"},
		{headOf(reduces, small), 581, "reduce-scatter of head"},
		{zeroed, 581 + 111, "reduce-scatter of head"}, // all sharded gradients: 50 + 2·20 + 1 + 20
		{headOf(repeats, tune), 491, "backward of head"},
		{headOf(repeats, wide), 562, "backward of head"},
	} {
		if peak := replica(t, c.table); peak.Memory.Total() != c.want || peak.At != c.at {
			t.Errorf("%d at %q, want %d at %q (%+v)", peak.Memory.Total(), peak.At, c.want, c.at, peak.Memory)
		}
	}
}

// replica walks through a step of one GPU.
func replica(t *testing.T, table *costmodel.Table) timeline.Peak {
	t.Helper()
	step, err := timeline.Replica(table, &costmodel.Device{})
	if err != nil {
		t.Fatal(err)
	}
	return step.Peak()
}

// TestReplicaUnknown: a strategy without an engine is refused.
func TestReplicaUnknown(t *testing.T) {
	for _, strategy := range []costmodel.Strategy{"", "zero4", costmodel.DeviceMap, costmodel.Pipeline, costmodel.Auto} {
		table := twoBlocks()
		table.Workload.Strategy = strategy
		if _, err := timeline.Replica(table, &costmodel.Device{}); err == nil {
			t.Errorf("%q has a timeline of a replica", strategy)
		}
	}
	for _, strategy := range costmodel.Strategies() {
		table := twoBlocks()
		table.Workload.Strategy = strategy
		if _, err := timeline.Replica(table, &costmodel.Device{}); strategy.Traits().Replicated != (err == nil) {
			t.Errorf("%s: %v", strategy, err)
		}
	}
}

// TestShardedRecompute: a block's input is kept by the unit before it, and
// forward runs again with the parameters gathered.
func TestShardedRecompute(t *testing.T) {
	table := twoBlocks()
	for _, unit := range []int{1, 2} {
		table.Units[unit].Recompute, table.Units[unit-1].CheckpointedOutput = true, 2
		table.Units[unit].Layers[0].Forward = 500
	}
	// In h.0: the root's and its own parameters, the reduction of h.1 and its sharded gradients,
	// the head's gradient, the embedding's indices, and the input that h.0 was called with.
	const want = 140 + 100 + 40 + 80 + 20 + 4 + 1 + 2 + 500
	if peak := replica(t, table); peak.Memory.Total() != want || peak.At != "recompute of h.0" {
		t.Errorf("%d at %q, want %d", peak.Memory.Total(), peak.At, want)
	}
}
