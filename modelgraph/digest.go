package modelgraph

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
)

// Digest names what the model is: names, shapes, types and ties, not where
// it was read from. It reads "sha256:…".
func (g *Graph) Digest() string {
	h := sha256.New()
	for i := range g.Layers {
		l := &g.Layers[i]
		fmt.Fprintf(h, "layer %q %d\n", l.Name, l.unit)
		digestTensors(h, "param", l.Params)
		digestTensors(h, "buffer", l.Buffers)
		if l.Declared != nil {
			fmt.Fprintf(h, "declared %v\n", *l.Declared)
		}
	}
	for _, t := range g.Ties {
		fmt.Fprintf(h, "tie %q\n", t.Tensors)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func digestTensors(h hash.Hash, kind string, ts []Tensor) {
	for i := range ts {
		fmt.Fprintf(h, "%s %q %v %v\n", kind, ts[i].Name, ts[i].Shape, ts[i].DType)
	}
}
