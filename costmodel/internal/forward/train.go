package forward

import (
	"fmt"
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
}

// Trained is what a run holds: its moments, all of them with the components'
// tensors, and what the allocator reserves.
type Trained struct {
	Moments       []Moment
	Adapters      int64 // bytes of their matrices
	Buckets       int64
	Workspaces    int64
	ReservedBytes int64
	FLOPs         float64 // of a step
	Traffic       float64
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
		flops, traffic := run.flops, run.traffic
		if err := run.step(); err != nil {
			return Trained{}, err
		}
		run.made.FLOPs, run.made.Traffic = run.flops-flops, run.traffic-traffic
	}
	run.made.Moments = append([]Moment{run.first}, run.made.Moments...)
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
	first  Moment
	made   Trained
}

func newTrainee(parts Parts, call Call, ask Training) *trainee {
	width := parts.Transformer.DType.Bits() / 8
	run := &trainee{ask: ask, parts: parts, call: call, root: module{modules: modulesOf(parts.Transformer)}}
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
		name := run.parts.Transformer.Layers[i].Name
		if in, out := run.root.inward(name), run.root.out(name); in > 0 && run.adapts(name) {
			for _, elements := range []int64{in * run.rank, run.rank * out} {
				run.picked = append(run.picked, elements)
				run.made.Adapters += run.alloc(elements * run.adapter).bytes
			}
		}
	}
	if len(run.picked) == 0 {
		return fmt.Errorf("no layer of the %s has a name that ends in %q", run.parts.Transformer.Class, run.ask.Targets)
	}
	run.workspace(1 << 20) // cuBLASLt's
	if err := run.encode(1); err != nil {
		return err
	}
	run.first = Moment{Name: "load", Component: run.widest(), PeakBytes: run.peak}
	run.cache.Empty()
	if run.ask.Latents && run.parts.Autoencoder != nil {
		if err := run.pictures(); err != nil {
			return err
		}
		run.first.PeakBytes = max(run.first.PeakBytes, run.peak)
		run.drop(run.vae...)
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

// workspace is that of a thread's matrix products.
func (run *trainee) workspace(more int64) {
	for _, bytes := range []int64{run.ask.Workspace, more} {
		if bytes > 0 {
			run.made.Workspaces += run.alloc(bytes).bytes
		}
	}
}

// widest is the last encoder's class, which is the largest.
func (run *trainee) widest() string { return "text_encoder" }

// encode makes prompts' embeddings, without gradients; what it leaves is their
// size.
func (run *trainee) encode(batch int64) error {
	for i, encoder := range run.parts.Encoders {
		if walk := walks[encoder.Class]; walk != nil {
			walk(run.tape, module{modules: modulesOf(encoder)}, Call{Batch: batch, Text: run.parts.Texts[i]})
		}
	}
	return nil
}

// pictures encodes a batch of pictures.
func (run *trainee) pictures() error {
	walk := walks[run.parts.Autoencoder.Class]
	if walk == nil {
		return fmt.Errorf("the forward of a %s is not known here", run.parts.Autoencoder.Class)
	}
	given := 3 * run.call.Batch * run.call.Height * run.call.Width
	pixels := []*value{run.single(given)}
	if run.width < 4 {
		pixels = append(pixels, run.new(given))
	}
	walk(run.tape, module{modules: modulesOf(run.parts.Autoencoder)}, run.call)
	run.drop(pixels...)
	return nil
}

// moment ends a part of a step.
func (run *trainee) moment(name, component string) {
	grads, states := int64(0), int64(0)
	for _, held := range run.grads {
		grads += held.bytes
	}
	for _, held := range run.states {
		states += held.bytes
	}
	run.made.Moments = append(run.made.Moments, Moment{Name: name, Component: component, PeakBytes: run.peak, HeldBytes: grads, StateBytes: states})
	run.peak = run.live
}

// step is one step (train_dreambooth_lora_flux.py: main).
func (run *trainee) step() error {
	batch, tokens := run.call.Batch, run.call.Tokens
	if err := run.encode(batch); err != nil {
		return err
	}
	root := run.root
	embeds := []*value{run.new(batch * run.call.Text * root.inward("context_embedder")), run.new(batch * root.inward("time_text_embed.text_embedder.linear_1")), run.new(3 * run.call.Text)}
	run.moment("prompts", "text_encoder_2")
	if !run.ask.Latents && run.parts.Autoencoder != nil {
		if err := run.pictures(); err != nil {
			return err
		}
		run.moment("latents", "vae")
	}
	latents := batch * tokens * root.inward("x_embedder")
	for range 4 { // model_input, noise, noisy_model_input, and that packed
		embeds = append(embeds, run.new(latents))
	}
	embeds = append(embeds, run.new(3*tokens))
	out := trainFlux(run.training, root, run.call, run.ask.Recompute)
	run.drop(run.cached...)
	run.cached = nil
	grad := run.loss(&out, &embeds, latents)
	run.moment("forward", "transformer")
	if run.made.Workspaces < 2*run.ask.Workspace { // autograd's thread has its own
		run.workspace(0)
	}
	run.backward(out, grad)
	run.drop(run.angles)
	run.free(out)
	run.moment("backward", "transformer")
	run.update()
	run.drop(run.grads...)
	run.drop(embeds...)
	run.grads = nil
	return nil
}

// loss is the squared error in single precision: the prediction is unpacked, and
// its difference kept. It returns the prediction's gradient.
func (run *trainee) loss(out **tensor, kept *[]*value, count int64) slope {
	if run.ask.Autocast {
		wide := run.to(*out, 4) // convert_outputs_to_fp32
		run.free(*out)
		*out = wide
	}
	unpacked := run.unary(*out, nil)
	run.free(*out)
	*out = unpacked
	*kept = append(*kept, run.new(count), run.single(count))
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
