package phases

import (
	"slices"
	"testing"
)

// TestStages: xDiT gives every stage of a pipeline the even split rounded up and
// the last one the rest: FLUX's 57 blocks on four GPUs are 15, 15, 15 and 12.
func TestStages(t *testing.T) {
	for _, c := range []struct {
		blocks int64
		counts []int64
	}{{57, []int64{15, 15, 15, 12}}, {57, []int64{29, 28}}, {7, []int64{4, 3}}, {24, []int64{8, 8, 8}}} {
		counts := make([]int64, len(c.counts))
		for block := range c.blocks {
			counts[stageOf(block, c.blocks, int64(len(counts)))]++
		}
		if !slices.Equal(counts, c.counts) {
			t.Errorf("%d blocks: %v, want %v", c.blocks, counts, c.counts)
		}
	}
}

// TestShardedEncoders: where weights are sharded T5's are too, whatever its
// size, and CLIP's are not.
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
