package phases

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
)

// other notes the memory of ways without a flag: xDiT's pipeline class instead of diffusers' own,
// FSDP2 instead of FSDP1, group offloading with a stream or by leaves.
func (run *running) other() []string {
	var notes []string
	say := func(words string, change func(*running)) {
		twin := *run
		change(&twin)
		if denoise, err := twin.denoise(); err == nil {
			notes = append(notes, fmt.Sprintf(words, costmodel.Bytes(denoise.Memory[0].Total())))
		}
	}
	if run.class == "FluxPipeline" && run.work.Ulysses*run.work.Ring > 1 && run.work.PipeFusion == 1 {
		say("the peaks are of xDiT 0.7's runner; the older xFuserFluxPipeline caches keys and values of every layer, and GPU 0 then uses %s in denoising", func(twin *running) { twin.wrapped = true })
	}
	if run.work.FullyShardDegree > 1 {
		say("FSDP1 shards the weights, xDiT's default; --memory_efficient_sharding uses FSDP2, which gathers two blocks ahead, and GPU 0 then uses %s in denoising", func(twin *running) { twin.lean = true })
	}
	if run.work.Offload == "group" && run.denoiser != nil {
		most := int64(0)
		for _, block := range blocksOf(run.denoiser.Graph) {
			most = max(most, unitBytes(run.denoiser.Graph, block))
		}
		say(fmt.Sprintf("groups are of one block, without a stream, as emit --for diffusers writes the call: with use_stream=True the next block is there too, up to %v more; with offload_type=\"leaf_level\" GPU 0 holds %%v while it denoises", costmodel.Bytes(most)),
			func(twin *running) { twin.work.Offload = "sequential" })
	}
	return notes
}
