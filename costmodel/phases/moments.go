package phases

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/forward"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
)

// encode is the largest of the encoders' moments, and of the autoencoder's if a picture is given.
func (run *running) encode() (phasePlan, error) {
	phase := phasePlan{Name: "encode"}
	for _, encoder := range run.encoders {
		text := run.rule.text
		if strings.HasPrefix(encoder.Graph.Class, "CLIPTextModel") {
			text = 77
		}
		if !forward.Known(encoder.Graph.Class) { // its weights are resident, its forward is not walked
			run.larger(&phase, encoder, every(0))
			continue
		}
		cost, err := forward.Of(encoder.Graph, forward.Call{Batch: run.work.Batch, Text: text, Streamed: run.work.Offload == "sequential"}, width(encoder.Graph))
		if err != nil {
			return phase, err
		}
		phase.Seconds += run.roofline(cost)
		run.larger(&phase, encoder, every(cost.PeakBytes))
	}
	if err := run.seen(&phase); err != nil {
		return phase, err
	}
	if phase.Memory == nil {
		return phasePlan{}, nil
	}
	return phase, nil
}

// seen is the autoencoder's moment when it encodes the given pictures.
func (run *running) seen(phase *phasePlan) error {
	if run.rule.given == 0 || run.decoder == nil {
		return nil
	}
	call := run.decoding()
	call.Decode = false
	if run.rule.given > 0 {
		call.Frames = run.rule.given
	}
	bytes, more := width(run.decoder.Graph), int64(0)
	if run.rule.raises && bytes == 2 && upcast(run.decoder.Graph) {
		bytes, more = 4, forward.Bytes(run.decoder.Graph)
	}
	cost, err := forward.Of(run.decoder.Graph, call, bytes)
	if err != nil {
		return err
	}
	phase.Seconds += run.roofline(cost)
	run.larger(phase, run.decoder, every(cost.PeakBytes+more+run.embeddings()))
	return nil
}

// upcast reports an autoencoder that says nothing of force_upcast, or true (autoencoder_kl.py: True).
func upcast(graph *modelgraph.Graph) bool {
	var config struct {
		Raise *bool `json:"force_upcast"`
	}
	err := json.Unmarshal(graph.Config, &config)
	return err == nil && (config.Raise == nil || *config.Raise)
}

// every is a moment that is the same on each GPU.
func every(bytes int64) func(rank int64) int64 { return func(int64) int64 { return bytes } }

// larger makes a component the phase's if its moment is larger; activations returns a GPU's.
func (run *running) larger(phase *phasePlan, component *diffusers.Component, activations func(rank int64) int64) {
	var memory []costmodel.Memory
	for rank := range run.work.gpus() {
		used := run.memoryOf(component, run.stageOf(rank))
		used.Activations += activations(rank)
		memory = append(memory, used)
	}
	total := func(list []costmodel.Memory) (most int64) {
		for _, used := range list {
			most = max(most, used.Total())
		}
		return most
	}
	if phase.Memory == nil || total(memory) > total(phase.Memory) {
		phase.Component, phase.Memory = component.Name, memory
	}
}

// call is the denoiser's call on one GPU.
func (run *deployment) call() forward.Call {
	work := run.work
	call := forward.Call{
		Batch: work.Batch, Height: work.Height, Width: work.Width, Frames: work.Frames, Text: run.rule.text,
		Split: work.Ulysses * work.Ring * work.PipeFusion, Ring: work.Ring, Streamed: work.Offload == "sequential", Grouped: work.Offload == "group", CacheKV: run.wrapped,
	}
	if run.rule.guided && !run.rule.apart && work.CFGDegree == 1 {
		call.Batch *= 2
	}
	if run.rule.packed {
		call.Tokens = work.Height / tokenSide * (work.Width / tokenSide)
	}
	if run.rule.joined {
		call.Tokens *= 2
	}
	return call
}

// embeddings are the prompt's, which wait until the run is over.
func (run *deployment) embeddings() int64 {
	widest := int64(0)
	for _, encoder := range run.encoders {
		for i := range encoder.Graph.Layers {
			if op, ok := encoder.Graph.Layers[i].Op.(modelgraph.Embedding); ok && op.Index == modelgraph.TokenIndex {
				widest = max(widest, op.Dim)
			}
		}
	}
	count := run.work.Batch
	if run.rule.guided {
		count *= 2
	}
	return count * run.rule.text * widest * run.bytes()
}

// latents are the picture's.
func (run *deployment) latents() int64 {
	const channels, side, between = 16, 8, 4
	return run.work.Batch * channels * ((run.work.Frames-1)/between + 1) * (run.work.Height / side) * (run.work.Width / side) * run.bytes()
}

// denoise is one step, as often as there are steps.
func (run *running) denoise() (phasePlan, error) {
	if run.denoiser == nil {
		return phasePlan{}, nil
	}
	phase := phasePlan{Name: "denoise"}
	graph := run.denoiser.Graph
	cost, err := forward.Of(graph, run.call(), width(graph))
	if err != nil {
		return phase, err
	}
	peaks, err := run.stages(run.met(cost))
	if err != nil {
		return phase, err
	}
	run.larger(&phase, run.denoiser, func(rank int64) int64 { return peaks[run.stageOf(rank)] + run.latents() })
	// The first step fills the pipeline, and goes through its stages in turn (xfuser: warmup_steps 1).
	passes := float64(run.work.Steps + run.work.PipeFusion - 1)
	if run.rule.guided && run.rule.apart && run.work.CFGDegree == 1 {
		passes *= 2
	}
	hidden, waited := run.communication()
	phase.Seconds = passes * (max(run.roofline(cost), hidden) + waited)
	return phase, nil
}

// decode is the autoencoder's forward, with the prompt's embeddings resident.
func (run *running) decode() (phasePlan, error) {
	if run.decoder == nil {
		return phasePlan{}, nil
	}
	graph := run.decoder.Graph
	cost, err := forward.Of(graph, run.decoding(), width(graph))
	if err != nil {
		return phasePlan{}, err
	}
	phase := phasePlan{Name: "decode", Seconds: run.roofline(cost)}
	run.larger(&phase, run.decoder, run.decoded(cost.PeakBytes+run.embeddings()+run.latents()))
	return phase, nil
}

// decoding is the autoencoder's call.
func (run *deployment) decoding() forward.Call {
	work := run.work
	return forward.Call{
		Batch: work.Batch, Height: work.Height, Width: work.Width, Frames: work.Frames, Decode: true,
		Tiling: work.VAETiling, Slicing: work.VAESlicing, Streamed: work.Offload == "sequential", Tile: sampleSize(run.decoder.Graph),
	}
}

// sampleSize is the side of the pictures that an autoencoder was made for, and
// of its tiles (autoencoder_kl.py: tile_sample_min_size).
func sampleSize(graph *modelgraph.Graph) int64 {
	var config struct {
		SampleSize int64 `json:"sample_size"`
	}
	if err := json.Unmarshal(graph.Config, &config); err != nil {
		return 0
	}
	return config.SampleSize
}
