package phases

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
)

// degrees refuses what xDiT cannot cut.
func (run *deployment) degrees() error {
	heads := run.heads()
	work := run.work
	parts := work.Ulysses * work.Ring
	for _, refused := range []func() error{run.stops, run.short} {
		if err := refused(); err != nil {
			return err
		}
	}
	switch gpus := work.gpus(); {
	case gpus > 1 && work.Offload != "":
		return oneGPU(work.Offload)
	case run.denoiser.Name == "unet" && parts*work.PipeFusion > 1:
		return refusedf("xDiT cuts transformers: of a UNet it runs the prompt and its negative on two GPUs (cfg degree 2)")
	case heads%work.Ulysses != 0:
		return refusedf("ulysses %d does not divide the %d heads of %s", work.Ulysses, heads, run.denoiser.Class)
	case run.rule.rows && work.Height/tokenSide%parts != 0:
		return refusedf("ulysses × ring = %d does not divide the %d rows of tokens of height %d (%d pixels each)", parts, work.Height/tokenSide, work.Height, tokenSide)
	case run.rule.whole && work.tokens()%parts != 0:
		return refusedf("ulysses × ring = %d does not divide the %d tokens of a video", parts, work.tokens())
	case work.FullyShardDegree > 1 && work.PipeFusion > 1:
		return refusedf("fully_shard degree %d and pipefusion %d: a GPU of the pipeline has its own blocks alone, and nothing to share: one of the two", work.FullyShardDegree, work.PipeFusion)
	case gpus%work.FullyShardDegree != 0:
		return refusedf("fully_shard degree %d does not divide the %d GPUs of the other degrees", work.FullyShardDegree, gpus)
	}
	return nil
}

// oneGPU refuses offload on several GPUs, before any degree is tried.
func oneGPU(offload string) error {
	return fmt.Errorf("offload %s needs one GPU (--gpus 1): xDiT keeps weights on its GPUs; with --fully-shard-degree they are cut", offload)
}

// short refuses a pipeline of more stages than there are blocks for.
func (run *deployment) short() error {
	work, blocks := run.work, int64(len(blocksOf(run.denoiser.Graph)))
	switch {
	case work.PipeFusion > blocks:
		return refusedf("pipefusion %d is more than the %d blocks of %s", work.PipeFusion, blocks, run.denoiser.Class)
	case work.PipeFusion > 1 && slices.Contains(work.Layers, 0):
		return refusedf("pipefusion %d leaves a GPU without a block: xDiT gives %d of the %d of %s to each, rounded up", work.PipeFusion, work.Layers[0], blocks, run.denoiser.Class)
	}
	return nil
}

// stops refuses what xDiT 0.7 has no pipeline for, or fails at.
func (run *deployment) stops() error {
	work := run.work
	parts := work.Ulysses * work.Ring
	switch {
	case parts > 1 && run.class == "StableDiffusion3Pipeline" && run.dual():
		return refusedf("ulysses × ring = %d: xDiT 0.7 fails in the second attention of SD3.5 medium's blocks, which has no text (\"cannot access local variable 'joint_strategy'\")", parts)
	case work.PipeFusion > 1 && run.class == "StableDiffusion3Pipeline":
		return refusedf("pipefusion %d: xDiT 0.7 fails after SD3's warm-up: attention and USP shape keys and values differently (\"The expanded size of the tensor must match\")", work.PipeFusion)
	case work.PipeFusion > 1 && run.class != "FluxPipeline" && run.denoiser.Name != "unet":
		return refusedf("pipefusion %d: xDiT 0.7 has a pipeline of stages for FluxPipeline, none for %s", work.PipeFusion, run.class)
	}
	return nil
}

// dual reports blocks with a second attention.
func (run *deployment) dual() bool {
	return slices.ContainsFunc(run.denoiser.Graph.Layers, func(layer modelgraph.Layer) bool { return strings.HasSuffix(layer.Name, ".attn2") })
}

// tokens are a video's: four frames a latent after the first.
func (work Workload) tokens() int64 {
	return ((work.Frames-1)/4 + 1) * (work.Height / tokenSide) * (work.Width / tokenSide)
}

// product refuses degrees that are asked for and make up another number of GPUs
// (xfuser/config/config.py: ParallelConfig, "parallel_world_size must be equal to world_size").
func (work Workload) product(gpus int64) error {
	for _, degree := range []*int64{&work.CFGDegree, &work.Ulysses, &work.Ring, &work.PipeFusion} {
		*degree = max(1, *degree)
	}
	if made := work.gpus(); made != gpus {
		return refusedf("cfg × ulysses × ring × pipefusion = %d × %d × %d × %d = %d, and there are %d GPUs",
			work.CFGDegree, work.Ulysses, work.Ring, work.PipeFusion, made, gpus)
	}
	return nil
}

// farthest is how many GPUs more or fewer are tried for a remedy.
const farthest = 64

// remedied adds to a degree error the nearest degrees that work on so many GPUs, or else the
// nearest number of GPUs for which some do.
func remedied(pipeline *diffusers.Pipeline, asked Workload, gpu costmodel.Device, gpus int64, fault error) error {
	var broken *degreeError
	if !errors.As(fault, &broken) {
		return fault
	}
	for away := range min(gpus, farthest) + 1 {
		for _, count := range []int64{gpus - away, gpus + away} {
			if works := nearest(pipeline, asked, gpu, count); count > 0 && len(works) > 0 {
				return fmt.Errorf("%w; on --gpus %d: %s", fault, count, strings.Join(works[:min(3, len(works))], ", or "))
			}
		}
	}
	return fault
}

// nearest are the flags of all degrees that work on so many GPUs, the nearest to the given ones
// first: by how often each is doubled or halved.
func nearest(pipeline *diffusers.Pipeline, asked Workload, gpu costmodel.Device, gpus int64) []string {
	free := asked
	free.CFGDegree, free.Ulysses, free.Ring, free.PipeFusion = 0, 0, 0, 0
	var list []Workload
	for _, work := range free.over(gpus) {
		for _, shards := range []int64{asked.FullyShardDegree, gpus, 1} {
			work.FullyShardDegree = shards
			if run, _, err := begin(pipeline, work, gpu); err == nil && !slices.ContainsFunc(list, func(other Workload) bool { return other.away(run.work) == 0 }) {
				list = append(list, run.work)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Workload) int { return cmp.Compare(a.away(asked), b.away(asked)) })
	var flags []string
	for _, work := range list {
		flags = append(flags, work.flags())
	}
	return flags
}

// away is how far degrees are from others.
func (work Workload) away(asked Workload) float64 {
	total := 0.0
	other := asked.degreeFlags()
	for i, degree := range work.degreeFlags() {
		total += math.Abs(math.Log2(float64(max(1, degree.count))) - math.Log2(float64(max(1, other[i].count))))
	}
	return total
}

// degreeFlag is a degree as the command line has it.
type degreeFlag struct {
	name  string
	count int64
}

func (work Workload) degreeFlags() []degreeFlag {
	return []degreeFlag{
		{"--cfg-degree", work.CFGDegree},
		{"--ulysses", work.Ulysses},
		{"--ring", work.Ring},
		{"--pipefusion", work.PipeFusion},
		{"--fully-shard-degree", work.FullyShardDegree},
	}
}

// flags are the degrees that are more than 1.
func (work Workload) flags() string {
	var words []string
	for _, degree := range work.degreeFlags() {
		if degree.count > 1 {
			words = append(words, fmt.Sprintf("%s %d", degree.name, degree.count))
		}
	}
	if len(words) == 0 {
		return "no degrees"
	}
	return strings.Join(words, " ")
}
