package forward

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Training is how a program trains adapters of a transformer.
type Training struct {
	Rank      int64
	Targets   []string // ends of the names of the layers that have adapters
	Autocast  bool     // forwards of the transformer run under autocast
	Half      bool     // in fp16, with adapters in single precision
	Recompute bool     // blocks are checkpointed
	Latents   bool     // pictures were encoded before, and the autoencoder is gone
	Replicas  bool     // DDP averages gradients in buckets of its own
	Workspace int64    // cuBLAS's, of each thread that multiplies
	// Accumulates: gradients of several micro-batches are added before an update.
	Accumulates bool
}

// Moment is a part of a training run, in order.
type Moment struct {
	Name, Component string
	PeakBytes       int64
	GradBytes       int64 // gradients of adapters
	StateBytes      int64 // optimizer states
	Cost            Cost
}

// Trained is the memory of a run: its moments with the components' tensors, and the allocator's pool.
type Trained struct {
	Moments       []Moment
	Adapters      int64 // bytes of their matrices
	ResidentBytes int64 // of the components and adapters, with the allocator's rounding
	Buckets       int64
	Workspaces    int64
	ReservedBytes int64
}

// Trains reports a transformer with a followed training.
func Trains(class string) bool { return class == "FluxTransformer2DModel" }

// Train follows two steps of a program that trains adapters. First the components move to the GPU
// in turn, and the prompt is encoded. Each step encodes prompts and pictures, and runs forward,
// backward and update.
func Train(parts Parts, call Call, ask Training) (Trained, error) {
	if !Trains(parts.Transformer.Class) {
		return Trained{}, fmt.Errorf("the training of a %s is not known here", parts.Transformer.Class)
	}
	run := newTrainee(parts, call, ask)
	if err := run.prepare(); err != nil {
		return Trained{}, err
	}
	for range 2 { // the first makes states
		run.made.Moments = nil
		run.peak = run.live
		run.flops, run.traffic = 0, 0
		if err := run.microBatches(); err != nil {
			return Trained{}, err
		}
	}
	run.made.Moments = slices.Insert(run.made.Moments, 0, run.first)
	run.made.ReservedBytes = run.cache.PeakReserved
	return run.made, nil
}

// Parts are the components of a pipeline that is trained.
type Parts struct {
	Transformer, Autoencoder *modelgraph.Graph
	Encoders                 []*modelgraph.Graph
	Texts                    []int64 // tokens that each encoder reads
}

// trainee is the process of [Train].
type trainee struct {
	*training
	ask    Training
	parts  Parts
	call   Call
	root   module
	picked []int64 // elements of adapters' matrices
	vae    []*value
	states []*value
	spaces int
	// variables of the program's main function.
	variables map[string]*value
	first     Moment
	made      Trained
}

func newTrainee(parts Parts, call Call, ask Training) *trainee {
	width := parts.Transformer.DType.Bits() / 8
	run := &trainee{ask: ask, parts: parts, call: call, root: module{modules: modulesOf(parts.Transformer)}, variables: make(map[string]*value)}
	run.training = &training{tape: &tape{kernels: kernels{memory: memory{width: width, cache: allocator.NewCache()}, gpus: 1, ring: 1}}, rank: ask.Rank, adapter: width, half: ask.Half}
	if ask.Half {
		run.adapter = 4
	}
	if ask.Autocast {
		run.norms = 4
	}
	run.adapts = func(name string) bool {
		for _, target := range ask.Targets {
			if name == target || strings.HasSuffix(name, "."+target) {
				return true
			}
		}
		return false
	}
	return run
}

// resident brings a component to the GPU.
func (run *trainee) resident(graph *modelgraph.Graph) (made []*value) {
	if graph != nil {
		each(graph, func(tensor *modelgraph.Tensor) { made = append(made, run.alloc(tensor.Bytes)) })
	}
	return made
}

// prepare is what comes before the first step.
func (run *trainee) prepare() error {
	run.vae = run.resident(run.parts.Autoencoder)
	run.resident(run.parts.Transformer)
	for _, encoder := range run.parts.Encoders {
		run.resident(encoder)
	}
	for _, name := range linears(run.parts.Transformer) {
		switch {
		case !run.adapts(name):
		case !followed(name):
			return ErrTargets
		default:
			run.adapters(run.root.inward(name), run.root.out(name))
		}
	}
	if len(run.picked) == 0 {
		return ErrTargets
	}
	run.made.ResidentBytes = run.live
	const lt = 1 << 20 // cuBLASLt's workspace, of forward's thread
	run.workspace(lt)
	run.encode("instance", 1)
	run.first = Moment{Name: "load", Component: "text_encoder_2", PeakBytes: run.peak, Cost: Cost{FLOPs: run.flops, Traffic: run.traffic}}
	run.cache.Empty()
	if run.ask.Latents && run.parts.Autoencoder != nil { // each batch leaves a mean, and a deviation
		if err := run.pictures(); err != nil {
			return err
		}
		run.first.PeakBytes = max(run.first.PeakBytes, run.peak)
		live := run.live
		run.drop(run.vae...)
		run.made.ResidentBytes -= live - run.live
		run.cache.Empty()
	}
	if run.ask.Replicas {
		for _, elements := range run.picked {
			run.made.Buckets += elements * run.adapter
		}
		run.alloc(run.made.Buckets)
	}
	return nil
}

// adapters are the two matrices of a layer's adapter.
func (run *trainee) adapters(in, out int64) {
	for _, elements := range []int64{in * run.rank, run.rank * out} {
		run.picked = append(run.picked, elements)
		run.made.Adapters += elements * run.adapter
		run.alloc(elements * run.adapter)
	}
}

// workspace is a thread's workspace for matrix products.
func (run *trainee) workspace(more int64) {
	run.spaces++
	for _, bytes := range []int64{run.ask.Workspace, more} {
		if bytes > 0 {
			run.made.Workspaces += run.alloc(bytes).bytes
		}
	}
}

// encode makes prompts' embeddings, without gradients, and names them.
func (run *trainee) encode(name string, batch int64) {
	for i, encoder := range run.parts.Encoders {
		if walk := walks[encoder.Class]; walk != nil {
			walk(run.tape, module{modules: modulesOf(encoder)}, Call{Batch: batch, Text: run.parts.Texts[i]})
		}
	}
	run.set(name+" embeddings", run.new(batch*run.call.Text*run.root.inward("context_embedder")))
	run.set(name+" pooled", run.new(batch*run.root.inward("time_text_embed.text_embedder.linear_1")))
	run.set(name+" ids", run.new(3*run.call.Text))
}

// set gives a variable of the program's main function a value, and takes its last one away.
func (run *trainee) set(name string, fresh *value) {
	run.drop(run.variables[name])
	run.variables[name] = fresh
}

// pictures encodes a batch of pictures, which come in single precision.
func (run *trainee) pictures() error {
	walk := walks[run.parts.Autoencoder.Class]
	if walk == nil {
		return fmt.Errorf("the forward of a %s is not known here", run.parts.Autoencoder.Class)
	}
	single := run.width == 4 // the batch needs no cast
	run.set("pixel_values", nil)
	if single {
		run.set("batch", nil) // the walk makes its own input
	}
	walk(run.tape, module{modules: modulesOf(run.parts.Autoencoder)}, run.call)
	run.set("pixel_values", run.new(run.pixels()))
	if single {
		run.set("batch", run.variables["pixel_values"].hold())
	}
	return nil
}

// pixels are the values of a batch of pictures.
func (run *trainee) pixels() int64 { return 3 * run.call.Batch * run.call.Height * run.call.Width }

// moment ends a part of a step.
func (run *trainee) moment(name, component string) {
	grads, states := int64(0), int64(0)
	for _, grad := range run.grads {
		grads += grad.bytes
	}
	for _, state := range run.states {
		states += state.bytes
	}
	run.made.Moments = append(run.made.Moments, Moment{Name: name, Component: component, PeakBytes: run.peak, GradBytes: grads, StateBytes: states, Cost: Cost{FLOPs: run.flops, Traffic: run.traffic}})
	run.peak, run.flops, run.traffic = run.live, 0, 0
}

// microBatches runs a step's micro-batches: one, or the first and the last, which adds gradients.
func (run *trainee) microBatches() error {
	if run.ask.Accumulates {
		if err := run.step(); err != nil {
			return err
		}
		run.made.Moments, run.accumulated = nil, true
	}
	if err := run.step(); err != nil {
		return err
	}
	run.update()
	run.drop(run.grads...)
	run.grads, run.accumulated = nil, false
	return nil
}

// step is one step (train_dreambooth_lora_flux.py: main). A variable keeps its
// value until the next step gives it another.
func (run *trainee) step() error {
	run.set("batch", run.single(run.pixels()))
	run.encode("step", run.call.Batch)
	run.moment("prompts", "text_encoder_2")
	if !run.ask.Latents && run.parts.Autoencoder != nil {
		if err := run.pictures(); err != nil {
			return err
		}
		run.moment("latents", "vae")
	}
	latents := run.call.Batch * run.call.Tokens * run.root.inward("x_embedder")
	for _, name := range []string{"model_input", "noise", "noisy_model_input", "packed_noisy_model_input"} {
		run.set(name, run.new(latents))
	}
	run.set("latent_image_ids", run.new(3*run.call.Tokens))
	out := trainFlux(run.training, run.root, run.call, run.ask.Recompute)
	run.drop(run.cached...)
	run.cached = nil
	grad := run.loss(&out, latents)
	run.moment("forward", "transformer")
	if run.spaces == 1 { // autograd's thread has its own
		run.workspace(0)
	}
	run.backward(out, grad)
	run.drop(run.angles[:]...)
	run.set("model_pred", out.value)
	run.moment("backward", "transformer")
	return nil
}

// loss is the squared error in single precision: the prediction is unpacked, and
// its difference kept. It returns the prediction's gradient.
func (run *trainee) loss(out **tensor, count int64) slope {
	if run.ask.Autocast {
		wide := run.to(*out, 4) // convert_outputs_to_fp32
		run.free(*out)
		*out = wide
	}
	unpacked := run.unary(*out, nil)
	run.free(*out)
	*out = unpacked
	run.set("target", run.new(count))
	return run.slope(unpacked.elements * unpacked.width)
}

// update is AdamW over lists of tensors: states at the first step, and a
// temporary of each (torch/optim/adamw.py: _multi_tensor_adamw).
func (run *trainee) update() {
	if len(run.states) == 0 {
		for _, elements := range run.picked {
			run.states = append(run.states, run.alloc(elements*run.adapter), run.alloc(elements*run.adapter))
		}
	}
	var roots []*value
	for _, elements := range run.picked {
		roots = append(roots, run.alloc(elements*run.adapter))
	}
	run.drop(roots...)
	run.moment("update", "transformer")
}

// fluxTraining is a Flux transformer in training.
type fluxTraining struct {
	*training
	batch, image, text, dim int64
	temb                    *value
	checkpoints             bool
}

func (run fluxTraining) imageRows() int64 { return run.batch * run.image }
func (run fluxTraining) textRows() int64  { return run.batch * run.text }
func (run fluxTraining) rows() int64      { return run.batch * (run.image + run.text) }

// trainFlux is FluxTransformer2DModel.forward (transformer_flux.py) with
// gradients: the prediction in the type of the weights.
func trainFlux(train *training, root module, call Call, checkpoints bool) *tensor {
	infer := fluxRun{joint{tape: train.tape, batch: call.Batch, image: call.Tokens, text: call.Text, dim: root.out("x_embedder")}}
	run := fluxTraining{training: train, batch: call.Batch, image: call.Tokens, text: call.Text, dim: infer.dim, checkpoints: checkpoints}
	image := &tensor{value: run.linear(root, "x_embedder", run.imageRows()), elements: run.imageRows() * run.dim, width: run.width}
	run.temb = infer.conditions(root.in("time_text_embed"))
	text := &tensor{value: run.linear(root, "context_embedder", run.textRows()), elements: run.textRows() * run.dim, width: run.width}
	ids := run.new((run.image + run.text) * 3)
	angles := infer.angles(run.image+run.text, root)
	run.angles = [2]*value{angles[0], angles[1]}
	run.list(root, "transformer_blocks", run.double, &image, &text)
	run.list(root, "single_transformer_blocks", run.joint, &image, &text)
	vectors := run.modulation(root, "norm_out.linear", run.batch)
	normed := run.norm(image, run.imageRows(), run.batch > 1)
	normed = run.modulatedBy(normed, run.batch, run.dim)
	run.drop(vectors)
	run.free(image)
	out := run.layer(root, "proj_out", normed, run.imageRows())
	run.free(normed, text)
	run.drop(run.temb, ids)
	return out
}

// list runs a list's blocks. A checkpointed one keeps its inputs alone.
func (run fluxTraining) list(root module, name string, block func(mod module, image, text *tensor) (*tensor, *tensor), image, text **tensor) {
	for i := range root.count(name) {
		mod, from, fromText := root.at(name, i), *image, *text
		results := run.checkpoint(run.checkpoints, []*tensor{from, fromText}, func() []*tensor {
			made, madeText := block(mod, from, fromText)
			return []*tensor{made, madeText}
		})
		run.free(from, fromText)
		*image, *text = results[0], results[1]
	}
}

// gated is gate * y; the gate is a view of the modulation.
func (run fluxTraining) gated(y *tensor, modulation *value) *tensor { return run.unary(y, modulation) }

// feed is FeedForward with an approximate GELU.
func (run fluxTraining) feed(mod module, x *tensor, rows int64) *tensor {
	first := run.layer(mod, "net.0.proj", x, rows)
	active := run.unary(first, first.value)
	run.free(first)
	out := run.layer(mod, "net.2", active, rows)
	run.free(active)
	return out
}

// double is FluxTransformerBlock.forward.
func (run fluxTraining) double(block module, image, text *tensor) (*tensor, *tensor) {
	imageMod := run.modulation(block, "norm1.linear", run.batch)
	normed := run.modulatedBy(run.norm(image, run.imageRows(), false), run.batch, run.dim)
	textMod := run.modulation(block, "norm1_context.linear", run.batch)
	normedText := run.modulatedBy(run.norm(text, run.textRows(), false), run.batch, run.dim)
	attended, attendedText := run.attention(block.in("attn"), normed, normedText)
	gate := run.gated(attended, imageMod)
	hidden := run.added(image, gate)
	plain := run.norm(hidden, run.imageRows(), false)
	run.free(normed)
	normed = run.modulatedBy(plain.same(), run.batch, run.dim)
	run.free(plain)
	result := run.feed(block.in("ff"), normed, run.imageRows())
	scaled := run.gated(result, imageMod)
	run.free(result)
	next := run.added(hidden, scaled)
	run.free(hidden)
	gateText := run.gated(attendedText, textMod)
	hiddenText := run.added(text, gateText)
	plain = run.norm(hiddenText, run.textRows(), false)
	run.free(normedText)
	normedText = run.modulatedBy(plain.same(), run.batch, run.dim)
	run.free(plain)
	resultText := run.feed(block.in("ff_context"), normedText, run.textRows())
	scaledText := run.gated(resultText, textMod)
	nextText := run.added(hiddenText, scaledText)
	run.free(scaledText, hiddenText)
	run.drop(imageMod, textMod)
	run.free(normed, normedText, attended, attendedText, gate, scaled, gateText, resultText)
	return run.clipped(next, false), run.clipped(nextText, true)
}

// clipped is the clip of half precision, of the streams that have one.
func (run fluxTraining) clipped(x *tensor, has bool) *tensor {
	if !run.half || !has {
		return x
	}
	y := run.unary(x, x.value)
	run.free(x)
	return y
}

// attention is FluxAttnProcessor; text is nil if one row holds both streams.
func (run fluxTraining) attention(attn module, image, text *tensor) (*tensor, *tensor) {
	rows := image.elements / run.dim
	width := run.dim / attn.headCount()
	project := func(name string, x *tensor, rows int64) *tensor { return run.layer(attn, name, x, rows) }
	query, key, val := project("to_q", image, rows), project("to_k", image, rows), project("to_v", image, rows)
	var extra []*tensor
	if text != nil {
		extra = []*tensor{project("add_q_proj", text, run.textRows()), project("add_k_proj", text, run.textRows()), project("add_v_proj", text, run.textRows())}
	}
	rename := func(name **tensor, made *tensor) { old := *name; *name = made; run.free(old) }
	rename(&query, run.rms(query, width))
	rename(&key, run.rms(key, width))
	if text != nil {
		rename(&extra[0], run.rms(extra[0], width))
		rename(&extra[1], run.rms(extra[1], width))
		rename(&query, run.joined(run.batch > 1, extra[0], query))
		rename(&key, run.joined(run.batch > 1, extra[1], key))
		rename(&val, run.joined(run.batch > 1, extra[2], val))
	}
	rename(&query, run.turned(query))
	rename(&key, run.turned(key))
	out := run.attended(query, key, val, run.batch, attn.headCount(), run.dim)
	if text == nil {
		run.free(query, key, val)
		return out, nil
	}
	parts := run.divided(out, run.textRows()*run.dim, run.imageRows()*run.dim)
	gathered := run.gathered(parts[1], run.batch > 1)
	made := project("to_out.0", gathered, run.imageRows())
	run.free(gathered)
	gathered = run.gathered(parts[0], run.batch > 1)
	madeText := project("to_add_out", gathered, run.textRows())
	run.free(gathered)
	run.free(parts...)
	run.free(out, query, key, val)
	run.free(extra...)
	return made, madeText
}

// joint is FluxSingleTransformerBlock.forward.
func (run fluxTraining) joint(block module, image, text *tensor) (*tensor, *tensor) {
	hidden := run.joined(run.batch > 1, text, image)
	gate := run.modulation(block, "norm.linear", run.batch)
	normed := run.modulatedBy(run.norm(hidden, run.rows(), false), run.batch, run.dim)
	up := run.layer(block, "proj_mlp", normed, run.rows())
	active := run.unary(up, up.value)
	run.free(up)
	attended, _ := run.attention(block.in("attn"), normed, nil)
	both := run.joined(true, attended, active)
	down := run.layer(block, "proj_out", both, run.rows())
	scaled := run.gated(down, gate)
	run.free(down, both)
	out := run.added(hidden, scaled)
	run.free(scaled)
	out = run.clipped(out, true)
	textPart := run.sliced(out, run.textRows()*run.dim)
	imagePart := run.sliced(out, run.imageRows()*run.dim)
	run.free(hidden, normed, active, attended, out)
	run.drop(gate)
	return imagePart, textPart
}
