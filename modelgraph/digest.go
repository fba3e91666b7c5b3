package modelgraph

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
)

// Digest identifies the model: names, shapes, types and ties, not the file that it was read from.
// It has the form "sha256:…".
func (graph *Graph) Digest() string {
	h := sha256.New()
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		fmt.Fprintf(h, "layer %q %d\n", layer.Name, layer.UnitIndex)
		digestTensors(h, "param", layer.Params)
		digestTensors(h, "buffer", layer.Buffers)
		if layer.Repeat > 1 {
			fmt.Fprintf(h, "repeat %d\n", layer.Repeat)
		}
		if layer.Declared != nil {
			digestDeclared(h, layer.Declared)
		}
	}
	for i := range graph.Layers {
		if tape := graph.Layers[i].Tape; tape != nil {
			for _, step := range []*tapedStep{tape.Train, tape.Infer, tape.Recompute} {
				if step != nil {
					fmt.Fprintf(h, "tape %d %v\n", i, *step)
				}
			}
		}
	}
	for _, tie := range graph.Ties {
		fmt.Fprintf(h, "tie %q\n", tie)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func digestTensors(h hash.Hash, kind string, ts []Tensor) {
	var text []byte
	for i := range ts {
		text = append(strconv.AppendQuote(append(append(text[:0], kind...), ' '), ts[i].Name), " ["...) // fmt takes four times as long
		for j, size := range ts[i].Shape {
			if j > 0 {
				text = append(text, ' ')
			}
			text = strconv.AppendInt(text, size, 10)
		}
		h.Write(append(append(append(text, "] "...), ts[i].DType.String()...), '\n'))
	}
}

func digestDeclared(h hash.Hash, declared *Declared) {
	fmt.Fprintf(h, "declared {%v %v %v %v %v %v}\n", declared.ParamsBytes, declared.ActivationBytes, declared.WorkspaceBytes,
		declared.OutputBytes, declared.ForwardSeconds, declared.BackwardSeconds)
	if declared.Growth != (declaredGrowth{}) {
		fmt.Fprintf(h, "growth %v\n", declared.Growth)
	}
}
