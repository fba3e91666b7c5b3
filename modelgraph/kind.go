package modelgraph

import "strings"

// The kinds of units.
const (
	decoderLayer = "decoder-layer" // a block that sees earlier tokens alone, or reads an encoder's output
	encoderLayer = "encoder-layer" // a block that sees all tokens
	tower        = "tower"         // works on images: layers, embeddings, projectors
	embedding    = "embedding"     // looks up hidden states
	norm         = "norm"          // a normalisation outside the blocks
	rotary       = "rotary"        // the rotary embedding of all blocks
	head         = "head"          // makes logits
)

// setKinds finds the kind of each unit by its ops. If these do not show it (an MLP alone, a layer
// that was left out), a block has the kind of its module list.
func (graph *Graph) setKinds() {
	lists := map[string]string{}
	for i := range graph.Units {
		unit := &graph.Units[i]
		unit.Kind = unitKind(graph.Layers[unit.First:unit.End])
		if list := listOf(unit.Name); list != "" && (unit.Kind == decoderLayer || unit.Kind == encoderLayer) {
			lists[list] = unit.Kind
		}
	}
	for i := range graph.Units {
		if unit := &graph.Units[i]; unit.Kind == "" {
			unit.Kind = lists[listOf(unit.Name)]
		}
	}
}

// listOf returns the module list that has a unit as an entry: model.layers. for model.layers.3;
// empty for others.
func listOf(name string) string {
	list := strings.TrimRight(name, "0123456789")
	if list == name || !strings.HasSuffix(list, ".") {
		return ""
	}
	return list
}

// unitKind returns the kind of a unit of these layers; empty if it is not known.
func unitKind(layers []Layer) string {
	count := map[string]int{}
	for i := range layers {
		if layers[i].Stream.Kind == Image {
			return tower
		}
		switch op := layers[i].Op.(type) {
		case Attention:
			if op.Bidirectional && !op.Cross {
				count[encoderLayer]++
			} else {
				count[decoderLayer]++
			}
		case StateSpace:
			count[decoderLayer]++
		case Embedding:
			count[embedding]++
		case Head:
			count[head]++
		case Norm:
			count[norm]++
		case Rotary:
			count[rotary]++
		}
	}
	for _, kind := range []string{decoderLayer, encoderLayer, head, embedding} {
		if count[kind] > 0 {
			return kind
		}
	}
	for _, kind := range []string{norm, rotary} {
		if count[kind] == len(layers) {
			return kind
		}
	}
	return ""
}
