package modelgraph

import (
	"iter"
	"maps"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph/internal/learned"
)

// Layer is the smallest named node of the graph.
type Layer struct {
	// Name is the module path as the framework has it. For a bare parameter
	// (one held by a module that has children) it is the parameter's name.
	Name string
	Op   Op
	// Params and Buffers have names relative to Name.
	Params  []Tensor
	Buffers []Tensor
	// Inputs name the layers whose outputs this one reads. The first is what
	// it transforms, a second the residual added to its result, a third an
	// encoder's output. Nil means the layer before; empty means none.
	Inputs []string
	// Unit names the wrap unit; empty makes the layer a unit of its own.
	Unit string
	// Stream says which tokens the layer works on.
	Stream Stream
	// Repeat is how often the layer runs in one forward, each time on what the layers of its unit
	// made the time before (ALBERT's groups). Its tensors exist once; everything that it saves
	// exists as often as it runs. 0 and 1: once.
	Repeat int64
	// Declared has the costs that the model file states, or nil.
	Declared *Declared
	// Tape is what the layer did to memory in steps that ran without data, or nil.
	Tape *layerTape
	// Learned is what a table of types says of its steps, or nil.
	Learned learned.Steps

	// InputLayers are the indexes of the layers that Inputs name, and UnitIndex
	// that of the layer's unit in [Graph.Units]: [New] finds both.
	InputLayers []int
	UnitIndex   int
}

// Stream is the token sequence that a layer works on. The zero value is the
// text of the workload: batch × seq tokens.
type Stream struct {
	// Kind is one of [Text], [Target], [Fixed] and [Image].
	Kind string `json:"kind,omitzero"`
	// Tokens a sequence (Fixed) or an image (Image).
	Tokens int64 `json:"tokens,omitzero"`
	// Side and Multiple are for a tower that takes images of any size, in pixels. A token covers a
	// square with this side. Sides of images are rounded to the multiple. Zero: the model fixes the
	// size.
	Side     int64 `json:"side,omitzero"`
	Multiple int64 `json:"multiple,omitzero"`
}

// The kinds of [Stream].
const (
	Text   = ""       // seq tokens a sequence; an encoder–decoder's encoder
	Target = "target" // target-seq tokens: an encoder–decoder's decoder
	Fixed  = "fixed"  // Tokens a sequence, whatever seq is (ViT, Whisper's encoder)
	Image  = "image"  // Tokens an image; no images, no run
)

// Declared is the cost of a layer as its model file states it. Activation bytes are per
// micro-batch. A negative field means "not given". Growth with the workload is added.
type Declared struct {
	ParamsBytes     int64
	ActivationBytes int64
	WorkspaceBytes  int64
	OutputBytes     int64
	ForwardSeconds  float64
	BackwardSeconds float64
	Growth          declaredGrowth
}

// declaredGrowth is how declared bytes grow with the micro-batch.
type declaredGrowth struct {
	// Growth of the bytes kept for backward.
	ActivationBytes bytesGrowth `json:"activation_bytes,omitzero"`
	// Growth of the workspace.
	WorkspaceBytes bytesGrowth `json:"workspace_bytes,omitzero"`
	// Growth of the output.
	OutputBytes bytesGrowth `json:"output_bytes,omitzero"`
}

// bytesGrowth are bytes a sequence, a token, and a pair of tokens of one
// sequence (scores: tokens × length), of the layer's stream.
type bytesGrowth struct {
	// Bytes a sequence of the micro-batch.
	Sequence int64 `json:"sequence,omitzero"`
	// Bytes a token of the layer's stream.
	Token int64 `json:"token,omitzero"`
	// Bytes a pair of tokens of one sequence.
	Pair int64 `json:"pair,omitzero"`
}

// layerTape is what a layer did to the memory of one GPU in steps of three kinds. A
// nil step was not run.
type layerTape struct {
	// A forward and a backward.
	Train *tapedStep `json:"train,omitzero"`
	// A forward without gradients.
	Infer *tapedStep `json:"infer,omitzero"`
	// A forward and a backward that runs the forward of each unit of several layers again;
	// nil: as train.
	Recompute *tapedStep `json:"recompute,omitzero"`
}

// tapedStep is a layer in one step. Bytes are factors of 1, batch, batch·seq, batch·seq², seq and
// seq²; missing ones are 0. The moments are peaks of all layers together, without parameters,
// buffers and cuBLAS's workspaces.
type tapedStep struct {
	// Bytes that stay from its forward to its backward; of the first layer also the inputs.
	Saved []int64 `json:"saved,omitzero"`
	// Bytes that the model returns of it.
	Returned []int64 `json:"returned,omitzero"`
	// Most bytes of the caller's loss and of its gradient, with the layer that ran last.
	Loss []int64 `json:"loss,omitzero"`
	// Moments of its forward.
	Forward []tapedMoment `json:"forward,omitzero"`
	// Moments of its backward, with the new gradients of parameters of all layers.
	Backward []tapedMoment `json:"backward,omitzero"`
	// Moments of its backward, with the new gradients that are not added up yet.
	Accumulate []tapedMoment `json:"accumulate,omitzero"`
	// Bytes that another layer saves and this one saves too, by that layer: on another GPU it has a
	// copy.
	Copied map[string][]int64 `json:"copied,omitzero"`
	// Bytes by which the allocator's blocks are larger than its parameters and AdamW's states.
	Rests int64 `json:"rests,omitzero"`
	// It runs matrix products.
	Products bool `json:"products,omitzero"`
}

// tapedMoment is what exists at once.
type tapedMoment struct {
	// Bytes of all layers together.
	Bytes []int64 `json:"bytes"`
	// Bytes among them that do not belong to the layer's unit, by the layer on whose GPU they are.
	Past map[string][]int64 `json:"past,omitzero"`
}

// The factors of [tapedStep], and the most moments of a kind.
const tapeTerms, maxMoments = 6, 1 << 16

// Step returns the layer's part of a step of a kind, or nil.
func (tape *layerTape) Step(train, recompute bool) *tapedStep {
	switch {
	case tape == nil:
		return nil
	case !train:
		return tape.Infer
	case recompute && tape.Recompute != nil:
		return tape.Recompute
	}
	return tape.Train
}

// check returns an error for numbers that no step has; place is the tape's in the file.
func (tape *layerTape) check(place string) error {
	if tape == nil {
		return nil
	}
	for name, step := range map[string]*tapedStep{"train": tape.Train, "infer": tape.Infer, "recompute": tape.Recompute} {
		if step == nil {
			continue
		}
		all := slices.Concat([][]int64{step.Saved, step.Returned, step.Loss, {step.Rests}}, slices.Collect(maps.Values(step.Copied)))
		for _, moment := range slices.Concat(step.Forward, step.Backward, step.Accumulate) {
			all = append(all, moment.Bytes)
			all = slices.AppendSeq(all, maps.Values(moment.Past))
		}
		if len(all) > maxMoments {
			return placeError(place+"."+name, "%d numbers of bytes are more than %d", len(all), maxMoments)
		}
		for _, moment := range all {
			if len(moment) > tapeTerms || len(moment) > 0 && (slices.Min(moment) < 0 || slices.Max(moment) > 1<<50) {
				return placeError(place+"."+name, "%v is not up to %d numbers between 0 and 2^50", moment, tapeTerms)
			}
		}
	}
	return nil
}

// NotDeclared returns a Declared with no field given.
func NotDeclared() Declared {
	return Declared{ParamsBytes: -1, ActivationBytes: -1, WorkspaceBytes: -1, OutputBytes: -1, ForwardSeconds: -1, BackwardSeconds: -1}
}

// paramBytes is the stored size of the parameters that the layer owns.
func (layer *Layer) paramBytes() int64 {
	if layer.Declared != nil && layer.Declared.ParamsBytes >= 0 {
		return layer.Declared.ParamsBytes
	}
	return sumOwned(layer.Params, func(tensor *Tensor) int64 { return tensor.Bytes })
}

// paramCount is the number of parameters that the layer owns, in elements.
func (layer *Layer) paramCount() int64 {
	return sumOwned(layer.Params, func(tensor *Tensor) int64 { return tensor.Numel })
}

// Owned returns the parameters that the layer owns, by their index in Params. A tied one belongs to
// its owner alone.
func (layer *Layer) Owned() iter.Seq2[int, *Tensor] {
	return func(yield func(int, *Tensor) bool) {
		for i := range layer.Params {
			if layer.Params[i].Owner == "" && !yield(i, &layer.Params[i]) {
				return
			}
		}
	}
}

func sumOwned(ts []Tensor, size func(*Tensor) int64) int64 {
	var total int64
	for i := range ts {
		if ts[i].Owner == "" {
			total += size(&ts[i])
		}
	}
	return total
}
