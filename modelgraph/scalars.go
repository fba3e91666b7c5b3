package modelgraph

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Scalars returns a fingerprint of what [Graph.Digest] leaves out and a run depends on. That is
// every layer's inputs, and its operation with constants (an epsilon, RoPE's base, a window, an
// activation). It has the form "sha256:…".
func (graph *Graph) Scalars() string {
	sum := sha256.New()
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		op, err := encodeOp(layer.Op)
		if err != nil { // an op that was read or built is written
			panic(fmt.Sprintf("modelgraph: layer %q: %v", layer.Name, err))
		}
		fmt.Fprintf(sum, "layer %q %s %v\n", layer.Name, op, layer.InputLayers)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}
