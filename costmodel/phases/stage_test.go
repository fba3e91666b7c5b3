package phases

import (
	"slices"
	"testing"
)

// TestStages: xDiT gives every stage of a pipeline the even split rounded up and the last one the
// rest: FLUX's 57 blocks on four GPUs are 15, 15, 15 and 12.
func TestStages(t *testing.T) {
	for _, c := range []struct {
		blocks int64
		counts []int64
	}{{57, []int64{15, 15, 15, 12}}, {57, []int64{29, 28}}, {7, []int64{4, 3}}, {24, []int64{8, 8, 8}}, {57, []int64{8, 8, 8, 8, 8, 8, 8, 1}}, {4, []int64{2, 2, 0}}} {
		counts := evenly(c.blocks, int64(len(c.counts)))
		if !slices.Equal(counts, c.counts) {
			t.Errorf("%d blocks: %v, want %v", c.blocks, counts, c.counts)
		}
	}
}

// TestBalanced: no stage brings more than any other cut would have it bring.
func TestBalanced(t *testing.T) {
	for _, c := range []struct {
		sizes  []int64
		counts []int64
	}{
		{[]int64{6, 6, 6, 2, 2, 2, 2}, []int64{2, 5}},
		{[]int64{1, 1, 1, 9}, []int64{3, 1}},
		{[]int64{9, 1, 1, 1}, []int64{1, 3}},
		{[]int64{5, 5, 5}, []int64{1, 1, 1}},
		{[]int64{1, 1, 1, 1, 1, 10}, []int64{4, 1, 1}},
	} {
		if counts := balanced(c.sizes, int64(len(c.counts))); !slices.Equal(counts, c.counts) {
			t.Errorf("%d on %d: %v, want %v", c.sizes, len(c.counts), counts, c.counts)
		}
	}
}

// TestShardedEncoders: with sharded weights T5 is sharded too, whatever its size, and CLIP is not.
func TestShardedEncoders(t *testing.T) {
	pipeline := folder(t, flux)
	encode := func(work Workload) int64 {
		plan, err := of(pipeline, work, h200)
		if err != nil {
			t.Fatal(err)
		}
		return plan.Phases[2].Memory[0].Params
	}
	sizes := map[string]int64{}
	for _, component := range pipeline.Components {
		if component.Graph != nil {
			sizes[component.Name] = component.Graph.ParamCount() * 2
		}
	}
	want := (sizes["transformer"]+sizes["text_encoder_2"])/2 + 4
	if saved := encode(Workload{Ulysses: 2}) - encode(Workload{Ulysses: 2, FullyShardDegree: 2}); saved < want-8 || saved > want+8 {
		t.Errorf("%d bytes saved, want %d", saved, want)
	}
}
