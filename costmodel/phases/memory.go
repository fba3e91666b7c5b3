package phases

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/forward"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
)

// ltWorkspace is cuBLASLt's, which torch allocates beside cuBLAS' own
// (CUDABlas.cpp: _getWorkspaceSize; 33 MiB in all on an H200).
const ltWorkspace = 1 << 20

// stored is what components keep on a GPU, and how much of it the allocator
// gives beyond their tensors.
func stored(graphs ...*modelgraph.Graph) (tensors, rounding int64) {
	for _, graph := range graphs {
		tensors += forward.Bytes(graph)
	}
	return tensors, forward.Resident(graphs...) - tensors
}

// blocksOf are the wrap units of a denoiser that come one after another.
func blocksOf(graph *modelgraph.Graph) []*modelgraph.Unit {
	var blocks []*modelgraph.Unit
	for i := range graph.Units {
		if unit := &graph.Units[i]; unit.End > unit.First && graph.Layers[unit.First].Unit != "" {
			blocks = append(blocks, unit)
		}
	}
	return blocks
}

// unitBytes is the size of a unit's parameters and buffers.
func unitBytes(graph *modelgraph.Graph, unit *modelgraph.Unit) int64 {
	total := int64(0)
	for i := unit.First; i < unit.End; i++ {
		for _, tensor := range graph.Layers[i].Owned() {
			total += tensor.Bytes()
		}
	}
	return total
}

// held is what stands on a GPU while a component runs: everything, that
// component alone, or a part of it; and what its shards are gathered into.
func (run *running) held(component *diffusers.Component, stage int64) costmodel.Memory {
	memory := costmodel.Memory{Workspace: run.workspaces()}
	switch run.work.Offload {
	case "sequential": // the walk brings weights itself
		return memory
	case "model":
		tensors, rounding := stored(component.Graph)
		memory.Params, memory.Workspace = tensors, memory.Workspace+rounding
		return memory
	case "group":
		memory.Params = grouped(component)
		return memory
	}
	var graphs []*modelgraph.Graph
	for _, other := range run.all {
		graphs = append(graphs, other.Graph)
	}
	tensors, rounding := stored(graphs...)
	memory.Params, memory.Workspace = tensors, memory.Workspace+rounding
	run.cut(&memory, component, stage)
	return memory
}

// grouped is what stays of a component under group offloading by blocks of one
// while it runs: what is in no list of blocks, beside which its forward brings a
// block (hooks/group_offloading.py: _apply_group_offloading_block_level, which looks
// for lists among the component's own children, and, in autoencoders that say
// so, among the decoder's).
func grouped(component *diffusers.Component) int64 {
	graph := component.Graph
	rest := forward.Bytes(graph)
	switch {
	case component.Class == "AutoencoderKL" || component.Class == "AutoencoderKLWan":
		return decoderGroups(graph)
	case component.Library != "diffusers" || component.Name == "vae":
		return rest
	}
	for _, list := range []string{"transformer_blocks.", "single_transformer_blocks.", "blocks.", "down_blocks.", "up_blocks."} {
		for i := range graph.Layers {
			if strings.HasPrefix(graph.Layers[i].Name, list) {
				for _, tensor := range graph.Layers[i].Owned() {
					rest -= tensor.Bytes()
				}
			}
		}
	}
	return rest
}

// decoderGroups is what of a decoder is there at its peak: what is in no block,
// and the last block but one, which makes the largest picture of many channels.
func decoderGroups(graph *modelgraph.Graph) int64 {
	const list = "decoder.up_blocks."
	total, blocks := int64(0), map[string]int64{}
	last := 0
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		index, inside := strings.CutPrefix(layer.Name, list)
		for _, tensor := range layer.Owned() {
			switch {
			case inside:
				index, _, _ = strings.Cut(index, ".")
				blocks[index] += tensor.Bytes()
				last = len(blocks) - 1
			case strings.HasPrefix(layer.Name, "decoder."):
				total += tensor.Bytes()
			}
		}
	}
	return total + blocks[strconv.Itoa(max(0, last-1))]
}

// cut takes away what xDiT leaves to other GPUs of the denoiser, and of encoders
// where weights are sharded: a GPU keeps a shard, and gathers the block that runs
// and the next; what is in no block is gathered from the first forward on.
func (run *running) cut(memory *costmodel.Memory, component *diffusers.Component, stage int64) {
	graph := run.denoiser.Graph
	blocks := blocksOf(graph)
	if pipe := run.work.PipeFusion; pipe > 1 {
		for i, block := range blocks {
			if stageOf(int64(i), int64(len(blocks)), pipe) != stage {
				memory.Params -= unitBytes(graph, block)
			}
		}
	}
	degree := run.work.FullyShardDegree
	if degree < 2 {
		return
	}
	for _, sharded := range run.all {
		whole, cut := run.cutWhole(sharded)
		if !cut {
			continue
		}
		memory.Params -= whole - whole/degree
		if sharded == component {
			memory.CommBuffers += gathered(sharded.Graph)
		} else { // FSDP1 frees blocks after a forward, and not the root
			memory.CommBuffers += outside(sharded.Graph)
		}
	}
}

// cutWhole is the size of a component, and whether its weights are sharded where
// any are: all but CLIPs and the autoencoder (xfuser/model_executor/models/
// runner_models: fsdp_strategy).
func (run *running) cutWhole(component *diffusers.Component) (int64, bool) {
	whole := forward.Bytes(component.Graph)
	return whole, component != run.decoder && !strings.HasPrefix(component.Graph.Class, "CLIP")
}

// outside is what of a component is in no block: FSDP's root, which stays whole
// from its first forward on (torch/distributed/fsdp/_runtime_utils.py:
// _post_forward_reshard).
func outside(graph *modelgraph.Graph) int64 {
	rest := forward.Bytes(graph)
	for _, block := range blocksOf(graph) {
		rest -= unitBytes(graph, block)
	}
	return rest
}

// gathered is what of a sharded component is whole at a time: two blocks, and
// what is in none.
func gathered(graph *modelgraph.Graph) int64 {
	var sizes []int64
	for _, block := range blocksOf(graph) {
		sizes = append(sizes, unitBytes(graph, block))
	}
	rest := outside(graph)
	slices.Sort(sizes)
	for _, size := range sizes[max(0, len(sizes)-2):] {
		rest += size
	}
	return rest
}

// stageOf is the stage of a block where nobody says attn_layer_num_for_pp: every
// stage has as many as an even split rounded up, and the last what is left
// (xfuser/model_executor/models/transformers/base_transformer.py:
// _split_transformer_blocks).
func stageOf(block, blocks, stages int64) int64 {
	return block / ((blocks + stages - 1) / stages)
}

// encode is the largest of the encoders' moments.
func (run *running) encode() (Phase, error) {
	phase := Phase{Name: "encode"}
	for _, encoder := range run.encoders {
		text := run.rule.text
		if family := encoder.Graph.Class; family == "CLIPTextModel" || family == "CLIPTextModelWithProjection" {
			text = 77
		}
		cost, err := forward.Of(encoder.Graph, forward.Call{Batch: run.work.Batch, Text: text, Streamed: run.work.Offload == "sequential"}, width(encoder.Graph))
		if err != nil {
			return phase, err
		}
		phase.Seconds += run.roofline(cost)
		run.larger(&phase, encoder, cost.PeakBytes, 0)
	}
	if len(run.encoders) == 0 {
		return Phase{}, nil
	}
	return phase, nil
}

// larger makes a component the phase's where its moment is larger.
func (run *running) larger(phase *Phase, component *diffusers.Component, activations, buffers int64) {
	var memory []costmodel.Memory
	for rank := range run.work.gpus() {
		held := run.held(component, rank%run.work.PipeFusion)
		held.Activations += activations
		held.CommBuffers += buffers
		memory = append(memory, held)
	}
	total := func(list []costmodel.Memory) (most int64) {
		for _, held := range list {
			most = max(most, held.Total())
		}
		return most
	}
	if phase.Memory == nil || total(memory) > total(phase.Memory) {
		phase.Component, phase.Memory = component.Name, memory
	}
}

// call is what the denoiser is called with on one GPU.
func (run *running) call() forward.Call {
	work := run.work
	call := forward.Call{
		Batch: work.Batch, Height: work.Height, Width: work.Width, Frames: work.Frames, Text: run.rule.text,
		Split: work.Ulysses * work.Ring * work.PipeFusion, Ring: work.Ring, Streamed: work.Offload == "sequential", Grouped: work.Offload == "group",
	}
	if run.rule.guided && !run.rule.apart && work.CFGDegree == 1 {
		call.Batch *= 2
	}
	if run.rule.packed {
		call.Tokens = work.Height / 16 * (work.Width / 16)
	}
	return call
}

// embeddings are the prompt's, which wait until the run is over.
func (run *running) embeddings() int64 {
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
	return count * run.rule.text * widest * width(run.denoiser.Graph)
}

// latents are the picture's.
func (run *running) latents() int64 {
	const channels, side, between = 16, 8, 4
	return run.work.Batch * channels * ((run.work.Frames-1)/between + 1) * (run.work.Height / side) * (run.work.Width / side) * width(run.denoiser.Graph)
}

// denoise is one step, as often as there are steps.
func (run *running) denoise() (Phase, error) {
	phase := Phase{Name: "denoise"}
	graph := run.denoiser.Graph
	cost, err := forward.Of(graph, run.call(), width(graph))
	if err != nil {
		return phase, err
	}
	buffers := int64(0)
	if pipe := run.work.PipeFusion; pipe > 1 { // keys and values of all tokens of a stage's blocks, of the step before
		whole := run.call()
		tokens := cmp.Or(whole.Tokens, run.latents()/(32*4*width(graph)*run.work.Batch)) + whole.Text
		dim := run.heads() * headWidth(graph)
		buffers = 2 * whole.Batch * tokens / (run.work.Ulysses * run.work.Ring) * dim * width(graph) * ((int64(len(blocksOf(graph))) + pipe - 1) / pipe)
	}
	run.larger(&phase, run.denoiser, cost.PeakBytes+run.latents(), buffers)
	// The first step fills the pipeline, and goes through its stages in turn
	// (xfuser: warmup_steps 1).
	passes := float64(run.work.Steps + run.work.PipeFusion - 1)
	if run.rule.guided && run.rule.apart && run.work.CFGDegree == 1 {
		passes *= 2
	}
	hidden, waited := run.communication()
	phase.Seconds = passes * (max(run.roofline(cost), hidden) + waited)
	return phase, nil
}

// headWidth is that of the first attention.
func headWidth(graph *modelgraph.Graph) int64 {
	for i := range graph.Layers {
		if op, ok := graph.Layers[i].Op.(modelgraph.Attention); ok {
			return op.HeadDim
		}
	}
	return 0
}

// decode is the autoencoder's forward, beside the prompt's embeddings.
func (run *running) decode() (Phase, error) {
	if run.decoder == nil {
		return Phase{}, nil
	}
	graph := run.decoder.Graph
	cost, err := forward.Of(graph, run.decoding(), width(graph))
	if err != nil {
		return Phase{}, err
	}
	phase := Phase{Name: "decode", Seconds: run.roofline(cost)}
	run.larger(&phase, run.decoder, cost.PeakBytes+run.embeddings()+run.latents(), 0)
	return phase, nil
}

// decoding is what the autoencoder is called with.
func (run *running) decoding() forward.Call {
	work := run.work
	return forward.Call{
		Batch: work.Batch, Height: work.Height, Width: work.Width, Frames: work.Frames, Decode: true,
		Tiling: work.VAETiling, Slicing: work.VAESlicing, Streamed: work.Offload == "sequential", Tile: sampleSize(run.decoder.Graph),
	}
}

// single tells what an autoencoder takes that is loaded in single precision, as
// diffusers' page of Wan does it (torch_dtype=torch.float32 of
// AutoencoderKLWan.from_pretrained): neither its config nor its folder says so.
func (run *running) single() []string {
	if run.decoder == nil || run.decoder.Class != "AutoencoderKLWan" || width(run.decoder.Graph) != 2 {
		return nil
	}
	if run.work.Offload != "" && run.work.Offload != "model" {
		return []string{"the vae is counted in bf16: loaded in float32, as Wan's documentation does, its weights and activations are twice as large or more"}
	}
	cost, err := forward.Of(run.decoder.Graph, run.decoding(), 4)
	if err != nil {
		return nil
	}
	held := run.held(run.decoder, 0)
	peak := held.Total() + forward.Bytes(run.decoder.Graph) + cost.PeakBytes + run.embeddings() + run.latents()
	return []string{fmt.Sprintf("the vae is counted in bf16: loaded in float32, as Wan's documentation does, GPU 0 holds %v while it decodes", costmodel.Bytes(peak))}
}

// communication is the time of a step's messages: what compute hides, and what
// it waits for. Under Ulysses attention's tokens and heads change places, four
// tensors a block, of which (u-1)/u leave a GPU, and attention waits. Keys and
// values go round a ring while attention computes, and shards are gathered a
// block ahead.
func (run *running) communication() (hidden, waited float64) {
	rate := run.gpu.LinkBytesPerSecond
	if rate == 0 {
		return 0, 0
	}
	call, graph, work := run.call(), run.denoiser.Graph, run.work
	tokens := float64(cmp.Or(call.Tokens, run.latents()/(32*4*width(graph)*work.Batch))+call.Text) / float64(call.Split)
	tensor := float64(call.Batch) * tokens * float64(run.heads()*headWidth(graph)*width(graph)) * float64(len(blocksOf(graph)))
	waited = 4 * tensor * float64(work.Ulysses-1) / float64(work.Ulysses) / rate
	hidden = 2 * tensor * float64(work.Ring-1) / rate
	if degree := float64(work.FullyShardDegree); degree > 1 {
		hidden = max(hidden, float64(forward.Bytes(graph))*(degree-1)/degree/rate)
	}
	return hidden, waited
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
