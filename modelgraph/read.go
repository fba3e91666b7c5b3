package modelgraph

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// formatVersion is the format of a native model file.
const formatVersion = "devmap.model/v1"

// maxModelBytes is the limit of a model.json: a chain of 100,000 layers takes 30 MB.
const maxModelBytes = 256 << 20

// maxLayers limits the memory of everything that is made of layers, up to a plan: several KB each.
const maxLayers = 250_000

// fileModel and the types below are a file's fields. Their comments are the descriptions in
// model.schema.json, which editors show (TestSchema).
type fileModel struct {
	// The JSON schema that an editor checks the file against; devmap does not read it.
	Schema string `json:"$schema,omitzero"`
	// The format: devmap.model/v1.
	FormatVersion string `json:"format_version"`
	// The model's name in tables.
	Name string `json:"name"`
	// The longest sequence that the model takes.
	MaxSeq int64 `json:"max_seq,omitzero"`
	// Layers in the framework's module order.
	Layers []fileLayer `json:"layers"`
	// Groups of parameters, by full name (layer.parameter), that are one tensor;
	// the first owns it.
	Ties [][]string `json:"ties,omitzero"`
	// Groups of layers, by name, that one device holds: a forward joins their results and does not
	// move them.
	Joined [][]string `json:"joined,omitzero"`
	// Groups of layers that one stage of a pipeline holds; devmap.export writes
	// them.
	Staged []stagedGroup `json:"staged,omitzero"`
	// Unknown requirements for running the model, as text: devmap refuses a program because of
	// them, but not a map.
	Unknown []string `json:"unknown,omitzero"`
	// Notes of the file's author on what was seen and what was not, as text: every plan prints
	// them.
	Warnings []string `json:"warnings,omitzero"`
	// The workload that declared costs were taken at.
	Taken takenAt `json:"taken,omitzero"`
}

type fileLayer struct {
	// The module path as the framework names it: the key of the device map.
	Name string `json:"name"`
	// The operation with its dimensions; absent: opaque.
	Op jsontext.Value `json:"op,omitzero"`
	// Parameters; their elements must be those of the op's dimensions.
	Params []fileTensor `json:"params,omitzero"`
	// Buffers, saved or not: all lie on the layer's device.
	Buffers []fileTensor `json:"buffers,omitzero"`
	// The layers whose outputs it reads: first the one to transform, then a residual added to its
	// result, then an encoder's output. Absent: the layer before. Empty list: none.
	Inputs []string `json:"inputs,omitzero"`
	// Layers of one unit are never split. Absent: a unit of its own.
	Unit string `json:"unit,omitzero"`
	// The tokens that it works on; absent: the text.
	Stream *Stream `json:"stream,omitzero"`
	// How often the layer runs in one forward; absent: once.
	Repeat int64 `json:"repeat,omitzero"`
	// Costs that are known better than the op's.
	Declared *fileDeclared `json:"declared,omitzero"`
	// The layer's use of memory in steps that ran without data; devmap.export writes it.
	Tape *layerTape `json:"tape,omitzero"`
}

type fileTensor struct {
	// The name below the layer's; empty for a bare parameter.
	Name string `json:"name"`
	// Elements a dimension.
	Shape []int64 `json:"shape"`
	// The type as safetensors or PyTorch names it.
	DType string `json:"dtype"`
	// For a buffer: state dicts hold it, so a device map must cover it.
	Persistent bool `json:"persistent,omitzero"`
	// For a parameter: training does not change it.
	Frozen bool `json:"frozen,omitzero"`
}

type fileDeclared struct {
	// Bytes of all parameters together, in place of params.
	ParamsBytes *int64 `json:"params_bytes,omitzero"`
	// Bytes kept for backward, of one micro-batch.
	ActivationBytes *int64 `json:"activation_bytes,omitzero"`
	// The most bytes alive in addition while the layer runs.
	WorkspaceBytes *int64 `json:"workspace_bytes,omitzero"`
	// Bytes handed to the next layer.
	OutputBytes *int64 `json:"output_bytes,omitzero"`
	// Seconds of one forward.
	ForwardSeconds *float64 `json:"forward_seconds,omitzero"`
	// Seconds of one backward.
	BackwardSeconds *float64 `json:"backward_seconds,omitzero"`

	// Growth of the bytes with the micro-batch.
	Growth declaredGrowth `json:"growth,omitzero"`
}

// Read reads a native model (devmap.model/v1); name is in errors.
func Read(reader io.Reader, name string) (*Graph, error) {
	data, err := io.ReadAll(io.LimitReader(reader, maxModelBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", name, err)
	}
	if len(data) > maxModelBytes {
		return nil, &SyntaxError{File: name, Msg: fmt.Sprintf("larger than the %d MiB that a model file may have", maxModelBytes>>20)}
	}
	var model fileModel
	if err := DecodeJSON(name, data, &model, true); err != nil {
		return nil, err
	}
	graph, err := model.graph()
	if err != nil {
		var syn *SyntaxError
		if errors.As(err, &syn) {
			return nil, &SyntaxError{File: name, Place: syn.Place, Msg: syn.Msg}
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	graph.Source = name
	return graph, nil
}

func (model *fileModel) graph() (*Graph, error) {
	if model.FormatVersion != formatVersion {
		return nil, placeError("format_version", "%q is not %q", model.FormatVersion, formatVersion)
	}
	if model.MaxSeq < 0 || model.MaxSeq > maxDim {
		return nil, placeError("max_seq", "%d is not a sequence length", model.MaxSeq)
	}
	if taken := model.Taken; min(taken.Batch, taken.Seq, taken.TargetSeq) < 0 || max(taken.Batch, taken.Seq, taken.TargetSeq) > maxDim {
		return nil, placeError("taken", "batch %d, seq %d and target_seq %d are not between 0 and 2^40", taken.Batch, taken.Seq, taken.TargetSeq)
	}
	if len(model.Layers) > maxLayers {
		return nil, placeError("layers", "%d layers are more than the %d that a model may have", len(model.Layers), maxLayers)
	}
	layers := make([]Layer, len(model.Layers))
	for i := range model.Layers {
		layer, err := model.Layers[i].layer(fmt.Sprintf("layers[%d]", i))
		if err != nil {
			return nil, err
		}
		layers[i] = layer
	}
	graph, err := New(model.Name, layers, model.Ties)
	if err != nil {
		return nil, err
	}
	if err := Join(graph, model.Joined); err != nil {
		return nil, err
	}
	graph.Staged = model.Staged
	if err := stage(graph); err != nil {
		return nil, err
	}
	graph.MaxSeq, graph.Unknown, graph.Warnings, graph.Taken = model.MaxSeq, model.Unknown, model.Warnings, model.Taken
	doubts(graph)
	return graph, nil
}

func (layer *fileLayer) layer(place string) (Layer, error) {
	l := Layer{Name: layer.Name, Inputs: layer.Inputs, Unit: layer.Unit, Repeat: layer.Repeat, Op: Opaque{}}
	var err error
	if layer.Repeat < 0 || layer.Repeat > maxRepeat {
		return l, placeError(place+".repeat", "%d is not a number of runs (0 to %d)", layer.Repeat, maxRepeat)
	}
	if layer.Op != nil {
		if l.Op, err = decodeOp(layer.Op); err != nil {
			return l, placeError(place+".op", "%v", err)
		}
	}
	if layer.Stream != nil {
		l.Stream = *layer.Stream
		if err := checkStream(l.Stream); err != nil {
			return l, placeError(place+".stream", "%v", err)
		}
	}
	if l.Params, err = tensors(layer.Params, place+".params"); err != nil {
		return l, err
	}
	if l.Buffers, err = tensors(layer.Buffers, place+".buffers"); err != nil {
		return l, err
	}
	if layer.Declared != nil {
		if l.Declared, err = layer.Declared.declared(place + ".declared"); err != nil {
			return l, err
		}
	}
	l.Tape = layer.Tape
	return l, l.Tape.check(place + ".tape")
}

func checkStream(stream Stream) error {
	switch stream.Kind {
	case Text, Target, Fixed, Image:
	default:
		return fmt.Errorf("unknown kind %q (known: target, fixed, image; absent: text)", stream.Kind)
	}
	if stream.Tokens < 0 || stream.Tokens > maxDim {
		return fmt.Errorf("%d is not a number of tokens", stream.Tokens)
	}
	if min(stream.Side, stream.Multiple) < 0 || max(stream.Side, stream.Multiple) > maxDim {
		return fmt.Errorf("side %d and multiple %d are not sides in pixels", stream.Side, stream.Multiple)
	}
	return nil
}

func tensors(fs []fileTensor, place string) ([]Tensor, error) {
	ts := make([]Tensor, 0, len(fs))
	for i, tensor := range fs {
		dtype, err := ParseDType(tensor.DType)
		if err != nil {
			return nil, placeError(fmt.Sprintf("%s[%d].dtype", place, i), "%v", err)
		}
		ts = append(ts, Tensor{Name: tensor.Name, Shape: tensor.Shape, DType: dtype, Persistent: tensor.Persistent, Frozen: tensor.Frozen})
	}
	return ts, nil
}

func (declared *fileDeclared) declared(place string) (*Declared, error) {
	d := NotDeclared()
	for _, v := range []struct {
		name string
		from *int64
		to   *int64
	}{
		{"params_bytes", declared.ParamsBytes, &d.ParamsBytes},
		{"activation_bytes", declared.ActivationBytes, &d.ActivationBytes},
		{"workspace_bytes", declared.WorkspaceBytes, &d.WorkspaceBytes},
		{"output_bytes", declared.OutputBytes, &d.OutputBytes},
	} {
		if v.from == nil {
			continue
		}
		if *v.from < 0 {
			return nil, placeError(place+"."+v.name, "%d is negative", *v.from)
		}
		*v.to = *v.from
	}
	for _, v := range []struct {
		name string
		from *float64
		to   *float64
	}{{"forward_seconds", declared.ForwardSeconds, &d.ForwardSeconds}, {"backward_seconds", declared.BackwardSeconds, &d.BackwardSeconds}} {
		if v.from == nil {
			continue
		}
		if *v.from < 0 || !finite(*v.from) {
			return nil, placeError(place+"."+v.name, "%v is not a time", *v.from)
		}
		*v.to = *v.from
	}
	return &d, d.grow(declared.Growth, place+".growth")
}

// grow adds the growth of bytes with the workload. Bytes that grow and are not given begin at 0.
func (declared *Declared) grow(growth declaredGrowth, place string) error {
	for _, gain := range []struct {
		name string
		of   bytesGrowth
		base *int64
	}{
		{"activation_bytes", growth.ActivationBytes, &declared.ActivationBytes},
		{"workspace_bytes", growth.WorkspaceBytes, &declared.WorkspaceBytes},
		{"output_bytes", growth.OutputBytes, &declared.OutputBytes},
	} {
		for _, part := range []struct {
			name  string
			bytes int64
		}{{"sequence", gain.of.Sequence}, {"token", gain.of.Token}, {"pair", gain.of.Pair}} {
			if part.bytes < 0 || part.bytes > maxDim {
				return placeError(fmt.Sprintf("%s.%s.%s", place, gain.name, part.name), "%d is not between 0 and 2^40", part.bytes)
			}
		}
		if gain.of != (bytesGrowth{}) {
			*gain.base = max(0, *gain.base)
		}
	}
	declared.Growth = growth
	return nil
}
