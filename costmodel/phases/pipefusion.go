package phases

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel/internal/forward"
)

// evenly is the number of blocks of each stage without attn_layer_num_for_pp: the even split
// rounded up, the rest for the last (base_transformer.py: _split_transformer_blocks).
func evenly(blocks, stages int64) []int64 {
	each := (blocks + stages - 1) / stages
	var counts []int64
	for range stages {
		counts = append(counts, max(0, min(each, blocks)))
		blocks -= each
	}
	return counts
}

// balanced splits blocks so that the largest stage is smallest: it fills stages in order up to the
// smallest limit that leaves no block, at least one each. Limits are sums of neighbouring blocks.
func balanced(sizes []int64, stages int64) []int64 {
	fill := func(limit int64) []int64 {
		counts, used := []int64{0}, int64(0)
		for i, size := range sizes {
			left, open := int64(len(sizes)-i), stages-int64(len(counts))
			if last := len(counts) - 1; counts[last] > 0 && open > 0 && (used+size > limit || left <= open) {
				counts, used = append(counts, 0), 0
			}
			if used+size > limit {
				return nil
			}
			counts[len(counts)-1]++
			used += size
		}
		return counts
	}
	var limits []int64
	for i := range sizes {
		total := int64(0)
		for _, size := range sizes[i:] {
			total += size
			limits = append(limits, total)
		}
	}
	slices.Sort(limits)
	index, _ := slices.BinarySearchFunc(limits, true, func(limit int64, _ bool) int {
		if fill(limit) == nil {
			return -1
		}
		return 1
	})
	return fill(limits[min(index, len(limits)-1)])
}

// stage is the part of the blocks that a stage of PipeFusion has.
func (run *deployment) stage(index int64) *forward.Stage {
	first := int64(0)
	for _, count := range run.work.Layers[:index] {
		first += count
	}
	return &forward.Stage{First: int(first), End: int(first + run.work.Layers[index]), Blocks: len(blocksOf(run.denoiser.Graph))}
}

// stageOf is the stage of a GPU: neighbours share tokens (xfuser/core/
// distributed/parallel_state.py: "tp-sp-pp-cfg-dp", the first the fastest).
func (run *deployment) stageOf(rank int64) int64 {
	return rank / (run.work.Ulysses * run.work.Ring) % run.work.PipeFusion
}

// keys are a block's keys and values in the cache manager after a run, of the picture's tokens
// (xfuser/core/cache_manager/cache_manager.py: _naive_cache_update).
func (run *deployment) keys() int64 {
	image, _ := run.streams()
	return 2 * image
}

// streams are the bytes of the picture's rows on a GPU under PipeFusion, and of the text's.
func (run *deployment) streams() (image, text int64) {
	work, dim := run.work, run.heads()*headWidth(run.denoiser.Graph)*width(run.denoiser.Graph)
	batch := run.call().Batch
	image = batch * (work.Height / tokenSide) * (work.Width / tokenSide) / (work.Ulysses * work.Ring) * dim
	return image, batch * run.rule.text * dim
}

// cached is what a stage of PipeFusion holds from its second run on: its attentions' keys and
// values, and receive buffers. Warmup receives all at once, later runs part by part
// (group_coordinator.py: recv_buffer). The first stage receives pictures, the others both streams.
func (run *residency) cached(stage int64) (keys, buffers int64) {
	if run.work.PipeFusion == 1 {
		return run.wrappedKeys(), 0
	}
	keys = run.work.Layers[stage] * run.keys()
	if stage == 0 {
		return keys, 2 * run.latents()
	}
	image, text := run.streams()
	return keys, 2 * (image + text)
}

// layers sets the blocks of each stage to xDiT's own split.
func (run *deployment) layers() {
	blocks := blocksOf(run.denoiser.Graph)
	if run.work.PipeFusion == 1 || run.work.PipeFusion > int64(len(blocks)) {
		return
	}
	run.work.Layers = evenly(int64(len(blocks)), run.work.PipeFusion)
}

// evened splits the blocks so that the fullest GPU holds less.
func (run *deployment) evened() {
	var sizes []int64
	for _, block := range blocksOf(run.denoiser.Graph) {
		sizes = append(sizes, unitBytes(run.denoiser.Graph, block)+run.keys())
	}
	run.work.Layers = balanced(sizes, run.work.PipeFusion)
}

// stages are the denoiser's peaks on each stage during warmup, when all of the picture's tokens
// pass every stage. Later patches take less (pipeline_flux.py: _sync_pipeline, _async_pipeline).
// The peak of a single stage is whole.
func (run *running) stages(whole int64) ([]int64, error) {
	if run.work.PipeFusion == 1 {
		return []int64{whole}, nil
	}
	call := run.call()
	call.Split /= run.work.PipeFusion
	var peaks []int64
	for index := range run.work.PipeFusion {
		call.Stage = run.stage(index)
		cost, err := forward.Of(run.denoiser.Graph, call, width(run.denoiser.Graph))
		if err != nil {
			return nil, err
		}
		peaks = append(peaks, cost.PeakBytes)
	}
	return peaks, nil
}

// decoded is the decoder's moment, which under PipeFusion and in SD3's pipeline
// is the last GPU's alone (parallel_state.py: is_dp_last_group).
func (run *running) decoded(bytes int64) func(rank int64) int64 {
	if run.work.PipeFusion == 1 && run.class != "StableDiffusion3Pipeline" {
		return every(bytes)
	}
	return func(rank int64) int64 {
		if rank == run.work.gpus()-1 {
			return bytes
		}
		return run.embeddings() + run.latents()
	}
}

// wrappedKeys are what xFuserFluxPipeline keeps under Ulysses or in a ring: keys and values of
// every attention, of both streams. Its processor does not ask for the cache of a split sequence:
// transformer_flux.py imports the group _SP before it exists (base_model.py: _register_cache).
func (run *residency) wrappedKeys() int64 {
	if !run.wrapped {
		return 0
	}
	call, dim := run.call(), run.heads()*headWidth(run.denoiser.Graph)*width(run.denoiser.Graph)
	rows := call.Batch * (call.Tokens/call.Split + call.ShareText())
	return int64(len(blocksOf(run.denoiser.Graph))) * 2 * rows * dim
}
