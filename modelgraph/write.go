package modelgraph

import (
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Write writes the graph as a native model file that [Read] reads back.
// Where tensors lie in a checkpoint is not kept.
func Write(w io.Writer, g *Graph) error {
	f := fileModel{FormatVersion: formatVersion, Name: g.Name, MaxSeq: g.MaxSeq}
	for i := range g.Layers {
		l, err := writeLayer(&g.Layers[i])
		if err != nil {
			return err
		}
		f.Layers = append(f.Layers, l)
	}
	for _, t := range g.Ties {
		f.Ties = append(f.Ties, t.Tensors)
	}
	if err := json.MarshalWrite(w, &f, jsontext.Multiline(true), jsontext.WithIndent(" ")); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func writeLayer(l *Layer) (fileLayer, error) {
	f := fileLayer{Name: l.Name, Inputs: l.Inputs, Unit: l.Unit, Params: writeTensors(l.Params), Buffers: writeTensors(l.Buffers)}
	if l.Stream != (Stream{}) {
		f.Stream = &l.Stream
	}
	if l.Declared != nil {
		f.Declared = writeDeclared(*l.Declared)
	}
	if _, opaque := l.Op.(Opaque); opaque {
		return f, nil
	}
	var err error
	f.Op, err = encodeOp(l.Op)
	return f, err
}

func writeTensors(ts []Tensor) []fileTensor {
	var fs []fileTensor
	for i := range ts {
		shape := ts[i].Shape
		if shape == nil {
			shape = []int64{}
		}
		fs = append(fs, fileTensor{Name: ts[i].Name, Shape: shape, DType: lowerASCII(ts[i].DType.String())})
	}
	return fs
}

func writeDeclared(d Declared) *fileDeclared {
	given := func(v *int64) *int64 {
		if *v < 0 {
			return nil
		}
		return v
	}
	seconds := func(v *float64) *float64 {
		if *v < 0 {
			return nil
		}
		return v
	}
	return &fileDeclared{
		given(&d.ParamsBytes), given(&d.ActivationBytes), given(&d.WorkspaceBytes), given(&d.OutputBytes),
		seconds(&d.ForwardSeconds), seconds(&d.BackwardSeconds),
	}
}
