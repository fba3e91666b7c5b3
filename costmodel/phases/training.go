package phases

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/forward"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
)

// trainedClass is the pipeline that the preset's program loads
// (train_dreambooth_lora_flux.py: FluxPipeline).
const trainedClass = "FluxPipeline"

// resolution is the side of the pictures (parse_args: --resolution).
const resolution = 512

// packed is the side of a token in pixels: a latent covers 8, and a token 2 × 2 latents
// (pipeline_flux.py: _pack_latents). The program crops to --resolution as given.
const packed = 16

// train is the plan of a program that trains adapters on so many GPUs. All of them hold the same.
func train(pipeline *diffusers.Pipeline, asked Workload, gpu costmodel.Device, gpus int) ([]*Plan, error) {
	asked.Height, asked.Width = cmp.Or(asked.Height, asked.Width, resolution), cmp.Or(asked.Width, asked.Height, resolution)
	asked.Steps = cmp.Or(asked.Steps, 1)
	if gpus > 1 {
		asked.Replicas = int64(gpus)
	}
	if err := asked.trainable(pipeline); err != nil {
		return nil, err
	}
	plan, err := of(pipeline, asked, gpu)
	if err != nil {
		return nil, err
	}
	return []*Plan{plan}, nil
}

// trainable refuses what the program does not do, and suggests the nearest that it does.
func (work Workload) trainable(pipeline *diffusers.Pipeline) error {
	preset, asked := costmodel.Set("preset", work.Train.Preset), work.Train
	switch {
	case pipeline.Class != trainedClass:
		return costmodel.Refuse(preset, "the program loads a %s, and this is a %s: plan flux.1-dev, or leave %v out for its inference", trainedClass, pipeline.Class, preset)
	case len(pipeline.Components) == 1:
		return costmodel.Refuse(costmodel.Set("component", pipeline.Components[0].Name), "%v has all components on its GPU: leave %v out", preset, costmodel.Setting{Field: "component"})
	case work.Height != work.Width:
		side := work.Height
		if side%packed != 0 && work.Width%packed == 0 {
			side = work.Width
		}
		side = max(packed, side-side%packed)
		return costmodel.Refuse(costmodel.Set("width", work.Width), "%v crops pictures to squares (--resolution): use %v and %v", preset, costmodel.Set("height", side), costmodel.Set("width", side))
	case work.Height%packed != 0:
		less := max(packed, work.Height-work.Height%packed)
		return costmodel.Refuse(costmodel.Set("height", work.Height), "%v packs latents by 2 × 2 (_pack_latents), which takes multiples of %d pixels: use %v and %v, or %d for both", preset, packed,
			costmodel.Set("height", less), costmodel.Set("width", less), less+packed)
	case work.Offload != "":
		return costmodel.Refuse(costmodel.Set("offload", work.Offload), "%v has no offloading: leave %v out, and use %v", preset, costmodel.Setting{Field: "offload"}, costmodel.Set("recompute", costmodel.RecomputeFull))
	case work.VAETiling || work.VAESlicing || work.VAEPrecision != "":
		return costmodel.Refuse(preset, "it encodes whole batches of pictures in the type of the weights: leave the VAE's flags out, or use %v", costmodel.Set("cache_latents", true))
	case work.CFGDegree+work.Ulysses+work.Ring+work.PipeFusion+work.FullyShardDegree > 0:
		return costmodel.Refuse(preset, "each GPU trains the whole transformer under DDP, and degrees are xDiT's: leave them out")
	case work.Frames > 1:
		return costmodel.Refuse(costmodel.Set("frames", work.Frames), "%v trains on pictures: leave %v out", preset, costmodel.Setting{Field: "frames"})
	case work.Batch%max(1, asked.MicroBatches) != 0:
		return costmodel.Refuse(costmodel.Set("micro_batches", asked.MicroBatches), "%d does not divide the batch of %d: use %v, for micro-batches of %d", asked.MicroBatches, work.Batch,
			costmodel.Set("batch", (work.Batch/asked.MicroBatches+1)*asked.MicroBatches), work.Batch/asked.MicroBatches+1)
	case trainedTypes[asked.Precision] == 0:
		return costmodel.Refuse(costmodel.Set("precision", asked.Precision), "%v has --mixed_precision no, bf16 and fp16: use %v, which stores frozen weights and adapters in bf16, %v or %v", preset,
			costmodel.Set("precision", costmodel.BF16Mixed), costmodel.Set("precision", costmodel.FP32True), costmodel.Set("precision", costmodel.FP16Mixed))
	}
	return nil
}

// trainedTypes are the types of frozen weights (main: weight_dtype).
var trainedTypes = map[costmodel.Precision]modelgraph.DType{
	costmodel.FP32True: modelgraph.F32, costmodel.BF16Mixed: modelgraph.BF16, costmodel.FP16Mixed: modelgraph.F16,
}

// loaded is a component in the type that it is loaded in.
func (run *deployment) loaded(component *diffusers.Component) (*diffusers.Component, error) {
	if run.work.Train == nil {
		return run.typed(component)
	}
	return retyped(component, trainedTypes[run.work.Train.Precision])
}

// trained plans the moments of the second step, and those before it.
func (run *running) trained(plan *Plan) (*Plan, error) {
	asked := run.work.Train
	parts := forward.Parts{Transformer: run.denoiser.Graph}
	if run.decoder != nil {
		parts.Autoencoder = run.decoder.Graph
	}
	for _, encoder := range run.encoders {
		text := run.rule.text
		if strings.HasPrefix(encoder.Graph.Class, "CLIPTextModel") {
			text = 77
		}
		parts.Encoders, parts.Texts = append(parts.Encoders, encoder.Graph), append(parts.Texts, text)
	}
	call := run.call()
	call.Decode = false
	micro := max(1, asked.MicroBatches)
	call.Batch /= micro
	made, err := forward.Train(parts, call, forward.Training{
		Rank: asked.LoRARank, Targets: asked.LoRATargets, Autocast: asked.Precision != costmodel.FP32True, Half: asked.Precision == costmodel.FP16Mixed,
		Recompute: asked.Recompute == costmodel.RecomputeFull, Latents: run.work.CacheLatents, Replicas: run.work.Replicas > 1, Workspace: run.gpu.WorkspaceBytes, Accumulates: micro > 1,
	})
	if errors.Is(err, forward.ErrTargets) {
		return nil, costmodel.Refuse(costmodel.Set("lora_targets", strings.Join(asked.LoRATargets, ",")), "the %s has no such layer, or one whose adapters are not counted: use one or more of %s", run.denoiser.Graph.Class, strings.Join(forward.Adaptable(run.denoiser.Graph), ", "))
	}
	if err != nil {
		return nil, err
	}
	params := made.Adapters
	for _, component := range run.all {
		if component != run.decoder || !run.work.CacheLatents {
			params += forward.Bytes(component.Graph)
		}
	}
	for i := range made.Moments {
		moment := &made.Moments[i]
		used := costmodel.Memory{Params: params, Grads: moment.GradBytes, OptimizerState: moment.StateBytes, Workspace: made.Workspaces + made.ResidentBytes - params, CommBuffers: made.Buckets}
		used.Activations = moment.PeakBytes - used.Total()
		phase := phasePlan{Name: moment.Name, Component: moment.Component, Seconds: run.trainedSeconds(moment.Cost), Memory: slices.Repeat([]costmodel.Memory{used}, int(max(1, run.work.Replicas)))}
		if i > 0 { // a step
			plan.Seconds += phase.Seconds
		}
		plan.Phases = append(plan.Phases, phase)
	}
	plan.Workload = run.work
	plan.Pool = run.trainedPool(plan, made.ReservedBytes)
	plan.Warnings = append(plan.Warnings, "the text encoders stay on the GPU: the program deletes their names, and its list text_encoders keeps them for the prompts of each step")
	return plan, nil
}

// trainedSeconds is the time of a moment. fp32 products run without TF32 (--allow_tf32 is off).
func (run *running) trainedSeconds(cost forward.Cost) float64 {
	used := *run
	if rate := run.gpu.FP32FLOPS; rate > 0 && run.work.Train.Precision == costmodel.FP32True {
		used.gpu.FLOPS = rate
	}
	return used.roofline(cost)
}

// trainedPools are the allocator's range around its replay, as parts of the peak without weights,
// by the peak's component. The walks of encoders and the autoencoder lack small tensors, which move
// blocks. Measured on an H200 (fixtures/measured/dreambooth_h200.jsonl).
var trainedPools = map[bool][2]float64{true: {-0.03, 0.06}, false: {-0.15, 0.25}}

// trainedPool is the allocator's range.
func (run *running) trainedPool(plan *Plan, reserved int64) [2]float64 {
	most := plan.peak()
	var pool [2]float64
	for i := range plan.Phases {
		used := plan.Phases[i].Memory[0]
		if used.Total() != most {
			continue
		}
		part := float64(reserved-most) / float64(max(1, most-used.Params))
		for end, more := range trainedPools[plan.Phases[i].Component == run.denoiser.Name] {
			pool[end] = max(0, part+more)
		}
	}
	return pool
}
