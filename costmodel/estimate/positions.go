package estimate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// positionTables are what Transformers' modules call a learned table of
// positions: GPT-2, OPT and Whisper, BERT, CLIP.
var positionTables = []string{"wpe.weight", "embed_positions.weight", "position_embeddings.weight", "position_embedding.weight"}

// positionTable is a learned table of positions and the longest sequence that it has room for.
type positionTable struct {
	name          string
	rows, longest int64
	stream        string
}

// tablesOf finds the tables of a model read from a config: a name alone does not identify one.
func tablesOf(graph *modelgraph.Graph) []positionTable {
	if graph.Family == "" {
		return nil
	}
	var out []positionTable
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		if layer.Stream.Kind != modelgraph.Text && layer.Stream.Kind != modelgraph.Target {
			continue // as many as the model says
		}
		for j := range layer.Params {
			name := modelgraph.FullName(layer.Name, layer.Params[j].Name)
			if len(layer.Params[j].Shape) != 2 || !isPositionTable(name) {
				continue
			}
			positions := positionTable{name, layer.Params[j].Shape[0], layer.Params[j].Shape[0], layer.Stream.Kind}
			if graph.MaxSeq > 0 { // OPT keeps two rows for other uses
				positions.longest = min(positions.longest, graph.MaxSeq)
			}
			out = append(out, positions)
		}
	}
	return out
}

// generates reports that the tokens a model generates follow this stream.
func (positions *positionTable) generates(graph *modelgraph.Graph) bool {
	return positions.stream == modelgraph.Target || !hasTarget(graph)
}

// positionsBefore is a default length that leaves room for the tokens generated after it.
func positionsBefore(graph *modelgraph.Graph, seq, newTokens int64) int64 {
	for _, positions := range tablesOf(graph) {
		if positions.generates(graph) && newTokens < positions.longest {
			seq = min(seq, positions.longest-newTokens)
		}
	}
	return seq
}

// checkPositions refuses sequences longer than a learned table of positions: its lookup fails (an
// index out of range). Rotary positions continue.
func checkPositions(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	if workload.Mode == costmodel.Load {
		return nil
	}
	for _, positions := range tablesOf(graph) {
		field, length := "seq", workload.Seq
		if positions.stream == modelgraph.Target {
			field, length = "target_seq", workload.TargetSeq
		}
		limit := fmt.Sprintf("more than the %d that the position table %q of %d rows has room for", positions.longest, positions.name, positions.rows)
		switch {
		case length > positions.longest:
			return refuse(field, length, "%d tokens are %s", length, limit)
		case positions.generates(graph) && length+workload.NewTokens > positions.longest:
			return refuse("new_tokens", workload.NewTokens, "%d after %d tokens are %s", workload.NewTokens, length, limit)
		}
	}
	return nil
}

func isPositionTable(name string) bool {
	for _, end := range positionTables {
		if name == end || strings.HasSuffix(name, "."+end) {
			return true
		}
	}
	return false
}

// hasTarget reports a decoder with a length of its own.
func hasTarget(graph *modelgraph.Graph) bool {
	return slices.ContainsFunc(graph.Layers, func(layer modelgraph.Layer) bool { return layer.Stream.Kind == modelgraph.Target })
}

// CheckLengths refuses lengths that were asked for, of sequences or of a decoder's, and that no
// layer of the model reads. A fault is a [*costmodel.FieldError].
func CheckLengths(graph *modelgraph.Graph, seq, targetSeq bool) error {
	target := hasTarget(graph)
	switch {
	case targetSeq && !target:
		return refuse("target_seq", "", "the model is not an encoder-decoder: set the length of its input with %v", costmodel.Setting{Field: "seq"})
	case !seq || graph.Family == "" || target && !targetSeq: // what a decoder's length leaves open is as the other
		return nil
	}
	tokens := sampleTokens(graph)
	if tokens == 0 {
		return nil
	}
	return refuse("seq", "", "the model reads no text: its position table has room for %d tokens, and as many it always reads", tokens)
}

// sampleTokens are the tokens of a textless model's longest stream, a ViT's patches or Whisper's
// encoder, independent of the workload. 0 if it reads text.
func sampleTokens(graph *modelgraph.Graph) (tokens int64) {
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		if _, table := layer.Op.(modelgraph.Embedding); table && layer.Stream.Kind == modelgraph.Text {
			return 0
		}
		if layer.Stream.Kind == modelgraph.Fixed {
			tokens = max(tokens, layer.Stream.Tokens)
		}
	}
	return tokens
}
