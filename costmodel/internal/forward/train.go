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
}

// Moment is a part of a training run, in order.
type Moment struct {
	Name, Component string
	PeakBytes       int64
	HeldBytes       int64 // by gradients of adapters
	StateBytes      int64 // by optimizer states
	Cost            Cost
}

// Trained is what a run holds: its moments, all of them with the components'
// tensors, and what the allocator reserves.
type Trained struct {
	Moments       []Moment
	Adapters      int64 // bytes of their matrices
	ResidentBytes int64 // of the components and adapters, with what the allocator adds
	Buckets       int64
	Workspaces    int64
	ReservedBytes int64
}

// Trains reports a transformer whose training can be followed.
func Trains(class string) bool { return class == "FluxTransformer2DModel" }

// Train follows two steps of a program that trains adapters: the components in
// the order in which they come to the GPU, the prompt's encoding, and for each
// step the prompts', the pictures', forward, backward and update.
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
		run.memory.peak = run.memory.live
		run.flops, run.traffic = 0, 0
		if err := run.step(); err != nil {
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
	run.training = &training{tape: &tape{kernels: kernels{memory: memory{width: int64(width), cache: allocator.NewCache()}, gpus: 1, ring: 1}}, rank: ask.Rank, adapter: int64(width), half: ask.Half}
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
	for i := range run.parts.Transformer.Layers {
		layer := &run.parts.Transformer.Layers[i]
		for j := range layer.Params {
			name, matrix := strings.CutSuffix(modelgraph.FullName(layer.Name, layer.Params[j].Name), ".weight")
			if matrix && len(layer.Params[j].Shape) == 2 && run.adapts(name) {
				run.adapters(run.root.inward(name), run.root.out(name))
			}
		}
	}
	if len(run.picked) == 0 {
		return fmt.Errorf("no layer of the %s has a name that ends in %q", run.parts.Transformer.Class, run.ask.Targets)
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

// workspace is that of a thread's matrix products.
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

// set gives a variable of the program's main function a value, and takes its
// last one away.
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
	for _, held := range run.grads {
		grads += held.bytes
	}
	for _, held := range run.states {
		states += held.bytes
	}
	run.made.Moments = append(run.made.Moments, Moment{Name: name, Component: component, PeakBytes: run.peak, HeldBytes: grads, StateBytes: states, Cost: Cost{FLOPs: run.flops, Traffic: run.traffic}})
	run.peak, run.flops, run.traffic = run.live, 0, 0
}

// step is one step (train_dreambooth_lora_flux.py: main). What a variable holds
// stays until the next step gives it another value.
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
	run.update()
	run.drop(run.grads...)
	run.grads = nil
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
