package estimate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// positionTables are what Transformers' modules call a learned table of
// positions: GPT-2, OPT and Whisper, BERT.
var positionTables = []string{"wpe.weight", "embed_positions.weight", "position_embeddings.weight"}

// positionTable is a learned table of positions and the longest sequence that
// it has room for.
type positionTable struct {
	name       string
	rows, most int64
	stream     modelgraph.StreamKind
}

// tablesOf finds the tables of a model whose config was read: a name alone does
// not say what a table is for.
func tablesOf(g *modelgraph.Graph) []positionTable {
	if g.Family == "" {
		return nil
	}
	var out []positionTable
	for i := range g.Layers {
		l := &g.Layers[i]
		if l.Stream.Kind != modelgraph.Text && l.Stream.Kind != modelgraph.Target {
			continue // as many as the model says
		}
		for j := range l.Params {
			name := modelgraph.FullName(l.Name, l.Params[j].Name)
			if len(l.Params[j].Shape) != 2 || !isPositionTable(name) {
				continue
			}
			t := positionTable{name, l.Params[j].Shape[0], l.Params[j].Shape[0], l.Stream.Kind}
			if g.MaxSeq > 0 { // OPT keeps two rows for other uses
				t.most = min(t.most, g.MaxSeq)
			}
			out = append(out, t)
		}
	}
	return out
}

// generates reports that the tokens a model generates follow this stream.
func (t *positionTable) generates(g *modelgraph.Graph) bool {
	return t.stream == modelgraph.Target || !hasTarget(g)
}

// roomBefore is a default length that leaves room for the tokens generated
// after it.
func roomBefore(g *modelgraph.Graph, seq, newTokens int64) int64 {
	for _, t := range tablesOf(g) {
		if t.generates(g) && newTokens < t.most {
			seq = min(seq, t.most-newTokens)
		}
	}
	return seq
}

// checkPositions refuses sequences longer than a learned table of positions:
// its lookup fails there (an index out of range), where rotary positions go
// on.
func checkPositions(g *modelgraph.Graph, w *costmodel.Workload) error {
	if w.Mode == costmodel.Load {
		return nil
	}
	for _, t := range tablesOf(g) {
		field, length := "seq", w.Seq
		if t.stream == modelgraph.Target {
			field, length = "target_seq", w.TargetSeq
		}
		room := fmt.Sprintf("more than the %d that the position table %q of %d rows has room for", t.most, t.name, t.rows)
		switch {
		case length > t.most:
			return refuse(field, length, "%d tokens are %s", length, room)
		case t.generates(g) && length+w.NewTokens > t.most:
			return refuse("new_tokens", w.NewTokens, "%d after %d tokens are %s", w.NewTokens, length, room)
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
func hasTarget(g *modelgraph.Graph) bool {
	return slices.ContainsFunc(g.Layers, func(l modelgraph.Layer) bool { return l.Stream.Kind == modelgraph.Target })
}

// CheckLengths refuses lengths that were asked for, of sequences or of a
// decoder's, and that no layer of the model reads. A fault is a
// [*costmodel.FieldError].
func CheckLengths(g *modelgraph.Graph, seq, targetSeq bool) error {
	target := hasTarget(g)
	switch {
	case targetSeq && !target:
		return refuse("target_seq", "", "the model has no decoder beside an encoder: %v is the length of all that it reads", costmodel.Setting{Field: "seq"})
	case !seq || g.Family == "" || target && !targetSeq: // what a decoder's length leaves open is as the other
		return nil
	}
	var tokens int64
	for i := range g.Layers {
		l := &g.Layers[i]
		if _, table := l.Op.(modelgraph.Embedding); table && l.Stream.Kind == modelgraph.Text {
			return nil
		}
		if l.Stream.Kind == modelgraph.Fixed {
			tokens = max(tokens, l.Stream.Tokens)
		}
	}
	if tokens == 0 {
		return nil
	}
	return refuse("seq", "", "the model reads no text: its position table has room for %d tokens, and as many it always reads", tokens)
}
