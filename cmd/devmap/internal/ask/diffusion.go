package ask

import (
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/phases"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// Pipeline returns the problem of the flags for the diffusion pipeline that MODEL names. Its files
// are in folder, on disk or in builtIn.
func (request *Request) Pipeline(model, folder string, builtIn fs.FS) (*Question, error) {
	if request.IsLatency() {
		return nil, out.Usagef("--objective latency: %s is a pipeline of components, whose phases are planned for memory alone", model)
	}
	training, err := trainsPipeline(request, model)
	if err != nil {
		return nil, err
	}
	if training == nil {
		err = checkGenerating(request.cmd.Flags(), model)
	}
	if err == nil && training == nil && request.Generation.CacheLatents {
		err = out.Usagef("--cache-latents: pictures are encoded before training, and %s is planned for inference: use --preset %s", model, pipelinePreset)
	}
	if err == nil {
		err = OwnRelease(request, model)
	}
	if err != nil {
		return nil, err
	}
	pipeline, err := diffusers.Open(folder, builtIn)
	if err != nil {
		return nil, err
	}
	if builtIn != nil { // engines load it by its hub name
		pipeline.Folder = slices.Concat(HubIDs(folder), []string{folder})[0]
		model = pipeline.Folder
	}
	if err := only(pipeline, request.Generation.Component); err != nil {
		return nil, err
	}
	mode := costmodel.Infer
	if training != nil {
		mode = training.Mode
	}
	topology, err := request.devices(mode, 0)
	if err != nil {
		return nil, err
	}
	diffusion := &planner.Diffusion{Pipeline: pipeline, Workload: generation(request, training)}
	return &Question{Problem: planner.Problem{Diffusion: diffusion, Topology: topology}, Options: strategy.Options{Fixed: request.fixed(topology)}, Source: model, request: request}, nil
}

// pipelinePreset trains adapters of a diffusion pipeline.
const pipelinePreset = "diffusers-dreambooth-lora"

// pipelineTraining lists the fields that its users may set, and the allowed values; nil: any.
var pipelineTraining = map[string][]string{
	"mode": {"train"}, "strategy": {"ddp"}, "optimizer": {"adamw"}, "recompute": {"none", "full"}, "attention": {"sdpa"},
	"preset": nil, "batch": nil, "micro_batches": nil, "precision": nil, "lora_rank": nil, "lora_targets": nil,
}

// trainsPipeline returns the workload of [pipelinePreset], nil if it was not requested. It refuses
// settings that its program does not have.
func trainsPipeline(request *Request, model string) (*costmodel.Workload, error) {
	if !request.Given("preset") || request.work.Preset != pipelinePreset {
		return nil, nil
	}
	work, err := request.Workload()
	if err != nil {
		return nil, err
	}
	switch {
	case work.Mode != costmodel.Train:
		return nil, out.Usagef("--mode %s: --preset %s trains: use --mode train or leave one of them out", work.Mode, pipelinePreset)
	case request.Given("steps"):
		return nil, out.Usagef("--steps: they are denoising steps, and --preset %s plans one step of training: leave --steps out", pipelinePreset)
	case work.LoRARank < 1:
		return nil, out.Usagef("--lora-rank 0: --preset %s trains adapters alone: use --lora-rank 4", pipelinePreset)
	}
	for _, field := range costmodel.Fields() {
		name := strings.ReplaceAll(field.Name, "_", "-")
		values, known := pipelineTraining[field.Name]
		switch text := field.Text(&work); {
		case !request.Given(name):
		case !known:
			return nil, out.Usagef("--%s %s: --preset %s does not have it, and trains %s without it: leave --%s out", name, text, pipelinePreset, model, name)
		case values != nil && text != "" && !slices.Contains(values, text):
			return nil, out.Usagef("--%s %s: --preset %s has %s: use --%s %s", name, text, pipelinePreset, strings.Join(values, " and "), name, values[0])
		}
	}
	if request.Given("offload") {
		return nil, out.Usagef("--offload %s: --preset %s has no offloading: use --recompute full or --cache-latents", request.offload, pipelinePreset)
	}
	return &work, nil
}

// checkGenerating refuses flags about language models, which a pipeline's plan would ignore.
func checkGenerating(set *pflag.FlagSet, model string) error {
	planned := map[string]string{"mode": string(costmodel.Infer), "precision": "bf16-true", "attention": "sdpa"}
	for _, field := range costmodel.Fields() {
		name := strings.ReplaceAll(field.Name, "_", "-")
		if name != "batch" {
			drop(set, name)
		}
		flag := set.Lookup(name)
		if flag == nil || !flag.Changed || name == "batch" || name == "offload" || flag.Value.String() == planned[name] {
			continue
		}
		return notOfPipelines(flag, name, model)
	}
	return nil
}

// notOfPipelines returns the error of a flag about language models.
func notOfPipelines(flag *pflag.Flag, name, model string) error {
	switch {
	case name == "preset":
		return out.Usagef("--preset %s: it trains no diffusion pipeline, and %s is one: use --preset %s, or leave --preset out for its inference", flag.Value, model, pipelinePreset)
	case name == "mode" && flag.Value.String() == string(costmodel.Train):
		return out.Usagef("--mode train: devmap trains adapters of a diffusion pipeline such as %s: add --preset %s", model, pipelinePreset)
	case name == "mode" && flag.Value.String() == string(costmodel.Load):
		return out.Usagef("--mode load: %s is a pipeline of components; give one, such as %s/transformer, whose weights are placed alone", model, model)
	case name == "dp" || name == "tp":
		return out.Usagef("--%s: stages of several GPUs are a language model's in training, and %s is a pipeline of components (--ulysses, --ring, --pipefusion and --cfg-degree spread it)", name, model)
	default:
		return out.Usagef("--%s %s: %s is a pipeline of components, which make pictures with what their folder says; without --%s it is planned", name, flag.Value, model, name)
	}
}

// only keeps one component.
func only(pipeline *diffusers.Pipeline, name string) error {
	if name == "" {
		return nil
	}
	index := slices.IndexFunc(pipeline.Components, func(component diffusers.Component) bool { return component.Name == name })
	if index < 0 {
		var names []string
		for i := range pipeline.Components {
			names = append(names, pipeline.Components[i].Name)
		}
		return out.Usagef("--component %s: the pipeline has none of that name (it has %q)", name, names)
	}
	pipeline.Components = pipeline.Components[index : index+1]
	return pipeline.Components[0].Fault
}

// generation returns the workload of a diffusion pipeline, or of a program that trains it, from the
// flags.
func generation(request *Request, training *costmodel.Workload) phases.Workload {
	given := &request.Generation
	work := phases.Workload{
		Height: given.Height, Width: given.Width, Frames: given.Frames, Batch: request.work.Batch,
		Offload: string(request.tier()), VAETiling: given.VAETiling, VAESlicing: given.VAESlicing, VAEPrecision: given.VAEPrecision,
		CacheLatents: given.CacheLatents, CFGDegree: given.CFGDegree, Ulysses: given.Ulysses, Ring: given.Ring, PipeFusion: given.PipeFusion, FullyShardDegree: given.FullyShard,
	}
	if request.Given("steps") {
		work.Steps = request.Run.Steps
	}
	if work.Train = training; training != nil {
		work.Batch = training.Batch
	}
	return work
}

// OfModel refuses pipeline flags if MODEL is not a pipeline.
func (request *Request) OfModel(model string) error {
	names := []string{"steps"}
	for i := range generationFlags {
		names = append(names, generationFlags[i].name)
	}
	for _, name := range names {
		drop(request.cmd.Flags(), name)
		if request.Given(name) {
			return out.Usagef("--%s: it is for a diffusion pipeline, a folder with a model_index.json: %s is none", name, model)
		}
	}
	for _, mode := range offloadModes {
		if request.offload == mode {
			drop(request.cmd.Flags(), "offload")
		}
		if request.offload == mode {
			return out.Usagef("--offload %s: it is how diffusers offloads a pipeline, a folder with a model_index.json: %s is none (cpu and disk are for other models)", mode, model)
		}
	}
	return nil
}

// OwnRelease refuses a release of Transformers for a pipeline, as diffusers builds it.
func OwnRelease(request *Request, model string) error {
	if request.Transformers == "" {
		return nil
	}
	return out.Usagef("--transformers %s: diffusers builds %s, and devmap has the tables of one release of it: leave --transformers out", request.Transformers, model)
}
