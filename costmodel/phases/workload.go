package phases

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
)

// Workload is the request for a pipeline. Zero sizes are the pipeline's own.
type Workload struct {
	Height int64 `json:"height"` // pixels
	Width  int64 `json:"width"`
	Frames int64 `json:"frames"`
	Steps  int64 `json:"steps"`
	Batch  int64 `json:"batch"` // pictures, or videos, at once
	// Offload keeps weights on the host until they run: "model" a component at
	// a time, "group" a block, "sequential" a module.
	Offload    string `json:"offload,omitzero"`
	VAETiling  bool   `json:"vae_tiling,omitzero"`
	VAESlicing bool   `json:"vae_slicing,omitzero"`
	// VAEPrecision is the autoencoder's type, bf16 or fp32 [the one in the pipeline's documentation].
	VAEPrecision string `json:"vae_precision,omitzero"`
	// The degrees of xDiT split the prompt and its negative, heads, tokens in a ring, blocks in a
	// pipeline, and weights. The product of the first four is the number of GPUs.
	CFGDegree  int64 `json:"cfg_degree,omitzero"`
	Ulysses    int64 `json:"ulysses,omitzero"`
	Ring       int64 `json:"ring,omitzero"`
	PipeFusion int64 `json:"pipefusion,omitzero"`
	// Layers are the blocks of each stage of PipeFusion, made by the plan.
	Layers           []int64 `json:"attn_layer_num_for_pp,omitempty"`
	FullyShardDegree int64   `json:"fully_shard_degree,omitzero"`
	// Train is how a preset's program trains the denoiser's adapters; nil: the pipeline runs.
	// Replicas are the GPUs that train under DDP. CacheLatents: pictures are encoded before the
	// first step, and the autoencoder is dropped.
	Train        *costmodel.Workload `json:"-"`
	Replicas     int64               `json:"replicas,omitzero"`
	CacheLatents bool                `json:"cache_latents,omitzero"`
}

// offloads are the values of Offload.
var offloads = []string{"", "model", "sequential", "group"}

// filled has the pipeline's own sizes if none are asked for, and degrees of 1.
func (work Workload) filled(class string) (Workload, rule, error) {
	own, known := rules[class]
	if !known {
		return work, own, fmt.Errorf("%q is not a pipeline that is known here (known: %s)", class, strings.Join(slices.Sorted(maps.Keys(rules)), ", "))
	}
	if !slices.Contains(offloads, work.Offload) {
		return work, own, fmt.Errorf("offload %q is not known (known: model, sequential, group)", work.Offload)
	}
	for size, usual := range map[*int64]int64{
		&work.Height: own.height, &work.Width: own.width, &work.Frames: own.frames, &work.Steps: own.steps, &work.Batch: 1,
		&work.CFGDegree: 1, &work.Ulysses: 1, &work.Ring: 1, &work.PipeFusion: 1, &work.FullyShardDegree: 1,
	} {
		if *size == 0 {
			*size = usual
		}
		if *size < 1 || *size > 1<<20 {
			return work, own, fmt.Errorf("%d is not a size from 1 to %d", *size, 1<<20)
		}
	}
	err := work.fillPrecision(class)
	return work, own, err
}

// gpus is the number of GPUs that the degrees ask for.
func (work Workload) gpus() int64 { return work.CFGDegree * work.Ulysses * work.Ring * work.PipeFusion }

// degreeError is a rule of xDiT's that degrees break.
type degreeError struct{ rule string }

func (err *degreeError) Error() string { return err.rule }

// refusedf is a [degreeError].
func refusedf(format string, args ...any) error {
	return &degreeError{fmt.Sprintf(format, args...)}
}
