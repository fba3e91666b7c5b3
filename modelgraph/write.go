package modelgraph

import (
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Write writes the graph as a native model file that [Read] reads back. It does not keep the places
// of tensors in a checkpoint.
func Write(writer io.Writer, graph *Graph) error {
	model := fileModel{FormatVersion: formatVersion, Name: graph.Name, MaxSeq: graph.MaxSeq, Unknown: graph.Unknown, Warnings: graph.Warnings, Taken: graph.Taken}
	for i := range graph.Layers {
		layer, err := writeLayer(&graph.Layers[i])
		if err != nil {
			return err
		}
		model.Layers = append(model.Layers, layer)
	}
	model.Ties, model.Joined, model.Staged = graph.Ties, graph.Joined, graph.Staged
	if err := json.MarshalWrite(writer, &model, jsontext.Multiline(true), jsontext.WithIndent(" ")); err != nil {
		return err
	}
	_, err := io.WriteString(writer, "\n")
	return err
}

func writeLayer(layer *Layer) (fileLayer, error) {
	f := fileLayer{Name: layer.Name, Inputs: layer.Inputs, Unit: layer.Unit, Repeat: layer.Repeat, Params: writeTensors(layer.Params), Buffers: writeTensors(layer.Buffers), Tape: layer.Tape}
	if layer.Stream != (Stream{}) {
		f.Stream = &layer.Stream
	}
	if layer.Declared != nil {
		f.Declared = writeDeclared(*layer.Declared)
	}
	if _, opaque := layer.Op.(Opaque); opaque {
		return f, nil
	}
	var err error
	f.Op, err = encodeOp(layer.Op)
	return f, err
}

func writeTensors(ts []Tensor) []fileTensor {
	var fs []fileTensor
	for i := range ts {
		shape := ts[i].Shape
		if shape == nil {
			shape = []int64{}
		}
		fs = append(fs, fileTensor{Name: ts[i].Name, Shape: shape, DType: lowerASCII(ts[i].DType.String()), Persistent: ts[i].Persistent, Frozen: ts[i].Frozen})
	}
	return fs
}

func writeDeclared(declared Declared) *fileDeclared {
	given := func(v *int64) *int64 {
		if *v < 0 {
			return nil
		}
		return v
	}
	seconds := func(value *float64) *float64 {
		if *value < 0 {
			return nil
		}
		return value
	}
	return &fileDeclared{
		given(&declared.ParamsBytes), given(&declared.ActivationBytes), given(&declared.WorkspaceBytes), given(&declared.OutputBytes),
		seconds(&declared.ForwardSeconds), seconds(&declared.BackwardSeconds), declared.Growth,
	}
}
