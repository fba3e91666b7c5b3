package phases

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/forward"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
)

// Plan is a pipeline's memory and time.
type Plan struct {
	Workload Workload
	Phases   []phasePlan
	Seconds  float64  // of all phases, by the roofline; 0: the GPU's rates are not known
	Warnings []string // omissions, unmeasured parts, and memory that remains afterwards
	// Pool is the allocator's range beyond the peak, as parts of a phase's memory without weights.
	Pool [2]float64
	// After is what remains on each GPU of the plan when the run is over, after
	// each step of making room for another model.
	After []left
}

// phasePlan is a part of a run: encode, denoise or decode.
type phasePlan struct {
	Name      string
	Component string // the one that makes the peak
	// Memory is what each GPU holds at the phase's peak.
	Memory  []costmodel.Memory
	Seconds float64
}

// measuredPipelines were checked against a GPU; of the others only components were checked, or nothing.
var measuredPipelines = []string{
	"CogVideoXImageToVideoPipeline", "CogVideoXPipeline", "FluxFillPipeline", "FluxKontextPipeline", "FluxPipeline", "HunyuanVideoPipeline", "QwenImagePipeline",
	"StableDiffusion3Pipeline", "StableDiffusionPipeline", "StableDiffusionXLImg2ImgPipeline", "StableDiffusionXLInpaintPipeline", "StableDiffusionXLPipeline",
	"WanImageToVideoPipeline", "WanPipeline",
}

// measuredXDiT were checked against two GPUs under xDiT (fixtures/measured/xdit_h200.jsonl).
var measuredXDiT = []string{"FluxPipeline", "QwenImagePipeline", "StableDiffusion3Pipeline", "WanPipeline"}

// of is the plan of one workload, on as many GPUs as its degrees ask for.
func of(pipeline *diffusers.Pipeline, asked Workload, gpu costmodel.Device) (*Plan, error) {
	run, plan, err := begin(pipeline, asked, gpu)
	if err != nil {
		return nil, err
	}
	return run.planned(plan)
}

// planned fills in the phases. If a stage of PipeFusion exceeds its GPU, planned splits the blocks
// again if that makes the fullest GPU smaller.
func (run *running) planned(plan *Plan) (*Plan, error) {
	if run.work.Train != nil {
		return run.trained(plan)
	}
	own, err := run.phases(*plan)
	if err != nil || run.work.PipeFusion == 1 || own.peak() <= run.gpu.Budget()-run.gpu.ContextBytes {
		return own, err
	}
	run.evened()
	other, err := run.phases(*plan)
	if err != nil || other.peak() >= own.peak() {
		return own, err
	}
	return other, nil
}

// phases is a plan with its phases.
func (run *running) phases(made Plan) (*Plan, error) {
	plan := &made
	plan.Workload, plan.Warnings = run.work, slices.Clone(plan.Warnings)
	for _, phase := range []func() (phasePlan, error){run.encode, run.denoise, run.decode} {
		made, err := phase()
		if err != nil {
			return nil, err
		}
		if made.Name != "" {
			plan.Phases, plan.Seconds = append(plan.Phases, made), plan.Seconds+made.Seconds
		}
	}
	plan.After, plan.Pool = run.after(plan.Phases), pools[run.work.Offload]
	for _, notes := range [][]string{run.unmeasured(run.class), run.single(), run.next(plan.After)} {
		plan.Warnings = append(plan.Warnings, notes...)
	}
	return plan, nil
}

// begin reads a workload and the components, and refuses what cannot be.
func begin(pipeline *diffusers.Pipeline, asked Workload, gpu costmodel.Device) (*running, *Plan, error) {
	work, own, notes, err := asked.sized(pipeline.Class)
	if err != nil {
		return nil, nil, err
	}
	run := &running{residency{deployment{work: work, rule: own, gpu: gpu, class: pipeline.Class}}}
	plan := &Plan{Warnings: notes}
	for i := range pipeline.Components {
		component := &pipeline.Components[i]
		if component.Fault != nil {
			plan.Warnings = append(plan.Warnings, fmt.Sprintf("%v; the plan is without it", component.Fault))
			continue
		}
		loaded, err := run.loaded(component)
		if err != nil {
			return nil, nil, err
		}
		run.add(loaded)
		plan.Warnings = append(plan.Warnings, component.Graph.Warnings...)
	}
	if run.denoiser == nil && len(pipeline.Components) == 1 && len(run.all) == 1 {
		if err := run.alone(); err != nil {
			return nil, nil, err
		}
		return run, plan, nil
	}
	if run.denoiser == nil {
		return nil, nil, fmt.Errorf("the %s has no transformer or unet that could be read: %d components were, and there is nothing to plan", pipeline.Class, len(run.all))
	}
	run.layers()
	if err := run.unread(); err != nil {
		return nil, nil, err
	}
	if err := run.degrees(); err != nil {
		return nil, nil, err
	}
	return run, plan, nil
}

// unmeasured says what was not measured on a GPU.
func (run *running) unmeasured(class string) []string {
	var notes []string
	for _, encoder := range run.encoders {
		if !forward.Known(encoder.Graph.Class) {
			notes = append(notes, fmt.Sprintf("%s: the forward of a %s is not known here: its weights are counted, and nothing for what it makes", encoder.Name, encoder.Graph.Class))
		}
	}
	for _, component := range run.all {
		if component.Name == "vae" && component != run.decoder {
			notes = append(notes, fmt.Sprintf("%s: the forward of a %s is not known here: its weights are counted, and the phase that decodes is left out", component.Name, component.Graph.Class))
		}
	}
	if run.rule.joined {
		notes = append(notes, "the given picture is counted as large as the one that is made")
	}
	if !slices.Contains(measuredPipelines, class) {
		notes = append(notes, fmt.Sprintf("%s was not measured as a whole: its peaks are diffusers' forwards read line by line, with a band of 5 %%", class))
	}
	switch distributed := run.work.gpus() > 1 || run.work.FullyShardDegree > 1; {
	case distributed && slices.Contains(measuredXDiT, class):
		notes = append(notes, "xDiT was measured on two GPUs, with models of few blocks, within 1 %; NCCL's own memory comes on top")
	case distributed:
		notes = append(notes, "xDiT's buffers were read, not measured: peaks have a band of 10 %, and NCCL's own memory comes on top")
	}
	return append(notes, run.other()...)
}
