package estimate

import "github.com/devmap-dev/devmap/modelgraph"

// headAlone marks the norms that only a head in another unit reads, and those
// heads.
func headAlone(g *modelgraph.Graph) []bool {
	out := make([]bool, len(g.Layers))
	readers := make([]int, len(g.Layers))
	for i := range g.Layers {
		for _, j := range g.Layers[i].InputLayers() {
			readers[j]++
		}
	}
	for i := range g.Layers {
		in := g.Layers[i].InputLayers()
		if h, ok := g.Layers[i].Op.(modelgraph.Head); !ok || h.Pooled || len(in) != 1 {
			continue
		}
		_, norm := g.Layers[in[0]].Op.(modelgraph.Norm)
		if norm && readers[in[0]] == 1 && g.Layers[in[0]].UnitIndex() != g.Layers[i].UnitIndex() {
			out[i], out[in[0]] = true, true
		}
	}
	return out
}

// inputs is the layer that embeds the tokens of a decoder, one all of whose
// attention to text looks back, or -1.
func inputs(g *modelgraph.Graph) int {
	embedding, decoder := -1, false
	for i := range g.Layers {
		if _, ok := g.Layers[i].Op.(modelgraph.Embedding); ok && embedding < 0 && g.Layers[i].Stream.Kind == modelgraph.Text {
			embedding = i
		}
		a, ok := g.Layers[i].Op.(modelgraph.Attention)
		if !ok || g.Layers[i].Stream.Kind != modelgraph.Text {
			continue
		}
		if a.Bidirectional || a.Cross {
			return -1
		}
		decoder = true
	}
	if !decoder {
		return -1
	}
	return embedding
}
