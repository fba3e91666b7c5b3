package modelgraph_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/devmap-dev/devmap/modelgraph"
)

// rewrite writes a graph and reads it again: nothing may change.
func rewrite(t interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}, g *modelgraph.Graph,
) {
	t.Helper()
	var first, second bytes.Buffer
	if err := modelgraph.Write(&first, g); err != nil {
		t.Fatal(err)
	}
	again, err := modelgraph.Read(bytes.NewReader(first.Bytes()), g.Source)
	if err != nil {
		t.Fatalf("what was written is not read: %v\n%s", err, first.Bytes())
	}
	same := []cmp.Option{cmpopts.IgnoreUnexported(modelgraph.Layer{}, modelgraph.Tensor{}), cmpopts.EquateEmpty()}
	if d := cmp.Diff(g.Layers, again.Layers, same...); d != "" {
		t.Fatalf("layers (-before +after):\n%s", d)
	}
	if g.Digest() != again.Digest() || g.Name != again.Name || g.MaxSeq != again.MaxSeq || g.ParamBytes() != again.ParamBytes() {
		t.Fatalf("%q %d %s became %q %d %s", g.Name, g.MaxSeq, g.Digest(), again.Name, again.MaxSeq, again.Digest())
	}
	if d := cmp.Diff(g.Unknown, again.Unknown, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("unknown (-before +after):\n%s", d)
	}
	if d := cmp.Diff(g.TiedUnits(), again.TiedUnits()); d != "" {
		t.Fatalf("tied units (-before +after):\n%s", d)
	}
	for i := range g.Layers { // nil and empty inputs mean different things
		if d := cmp.Diff(g.Layers[i].InputLayers, again.Layers[i].InputLayers, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("inputs of layer %d (-before +after):\n%s", i, d)
		}
	}
	if err := modelgraph.Write(&second, again); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Fatalf("written again it differs (%v):\n%s\n%s", err, first.Bytes(), second.Bytes())
	}
}

// FuzzRead: anything is read or refused in one line that begins with the
// file, and what is read survives writing.
func FuzzRead(f *testing.F) {
	f.Add([]byte(example))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := modelgraph.Read(bytes.NewReader(data), "m.json")
		if err != nil {
			if s := err.Error(); !strings.HasPrefix(s, "m.json: ") || strings.ContainsFunc(s, unicode.IsControl) {
				t.Fatalf("error %q", s)
			}
			return
		}
		covered(t, g)
		rewrite(t, g)
	})
}

// covered checks what every graph promises: units in order without gaps, each
// layer run once, and keys that do not overlap.
func covered(t *testing.T, g *modelgraph.Graph) {
	t.Helper()
	next, ran := 0, 0
	keys := map[string]bool{}
	for u := range g.Units {
		unit := &g.Units[u]
		if unit.First != next || unit.End <= unit.First || len(unit.Exec) != unit.End-unit.First {
			t.Fatalf("unit %d: layers %d to %d, %v run", u, unit.First, unit.End, unit.Exec)
		}
		next, ran = unit.End, ran+len(unit.Exec)
		for _, k := range unit.Keys {
			if keys[k] {
				t.Fatalf("key %q twice", k)
			}
			keys[k] = true
		}
	}
	if next != len(g.Layers) || ran != next {
		t.Fatalf("%d of %d layers are in units, %d run", next, len(g.Layers), ran)
	}
	for k := range keys {
		for i := strings.LastIndexByte(k, '.'); i > 0; i = strings.LastIndexByte(k[:i], '.') {
			if keys[k[:i]] {
				t.Fatalf("key %q lies inside key %q", k, k[:i])
			}
		}
	}
	if g.ParamBytes() < 0 || g.ParamCount() < 0 {
		t.Fatalf("%d parameters, %d bytes", g.ParamCount(), g.ParamBytes())
	}
}

// weighs reports an operation that needs weights.
func weighs(op modelgraph.Op) bool {
	switch op.(type) {
	case modelgraph.Attention, modelgraph.MoE, modelgraph.Conv, modelgraph.Embedding:
		return true
	}
	return false
}

// TestRoundTrip makes random graphs in code.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "layers")
		var layers []modelgraph.Layer
		var names, tensors []string
		for i := range n {
			l := modelgraph.Layer{Name: string(rune('a'+i)) + rapid.SampledFrom([]string{"", ".x", "é\n\"", "€.0"}).Draw(t, "name")}
			l.Op = rapid.SampledFrom([]modelgraph.Op{ // with a weight of [2, 3], or none
				nil,
				modelgraph.Opaque{},
				modelgraph.Norm{Dim: 6, Style: modelgraph.GemmaRMSNorm, Post: true, Epsilon: 1e-5},
				modelgraph.Embedding{Vocab: 2, Dim: 3, Scaled: true, Factor: 55.42562584220407, Index: modelgraph.PositionIndex},
				modelgraph.Rotary{HeadDim: 8},
				modelgraph.Parameter{},
				modelgraph.Attention{Dim: 1, Heads: 1, KVHeads: 2, HeadDim: 1, Rope: true, QKNorm: modelgraph.RMSNorm},
				modelgraph.Attention{
					Dim: 1, Heads: 1, KVHeads: 2, HeadDim: 1, Rope: true, Scale: 1 / 3., ScoreCap: 1e-30, ScoreBias: "alibi", Transposed: true, QKEpsilon: 1e-6,
					Rotation: modelgraph.Rotation{Type: "yarn", Base: 1e6, Width: 4, Factor: 40, Trained: 4096, Slow: 1, Fast: 32, AttentionFactor: 0.1, Untruncated: true},
				},
				modelgraph.MoE{Dim: 3, Hidden: 1, Experts: 1, TopK: 1},
				modelgraph.Conv{In: 1, Out: 2, Kernel: 3, Activation: "gelu"},
			}).Draw(t, "op")
			if weighs(l.Op) || rapid.Bool().Draw(t, "weight") {
				l.Params = []modelgraph.Tensor{{Name: "weight", Shape: []int64{2, 3}, DType: rapid.SampledFrom([]modelgraph.DType{modelgraph.BF16, float8Type}).Draw(t, "type")}}
				tensors = append(tensors, l.Name+".weight")
			}
			if rapid.Bool().Draw(t, "declared") {
				d := modelgraph.NotDeclared()
				d.ActivationBytes = rapid.Int64Range(-1, 1<<50).Draw(t, "activations")
				d.ForwardSeconds = float64(rapid.IntRange(-1, 100).Draw(t, "seconds"))
				if d.ForwardSeconds > 0 {
					d.ForwardSeconds /= 3
				}
				l.Declared = &d
			}
			if len(names) > 0 && rapid.Bool().Draw(t, "inputs") {
				l.Inputs = rapid.SliceOfN(rapid.SampledFrom(names), 0, 2).Draw(t, "inputs")
			}
			l.Stream = rapid.SampledFrom([]modelgraph.Stream{{}, {Kind: modelgraph.Target}, {Kind: modelgraph.Fixed, Tokens: 9}}).Draw(t, "stream")
			names = append(names, l.Name)
			layers = append(layers, l)
		}
		var ties [][]string
		if len(tensors) > 1 && rapid.Bool().Draw(t, "tie") {
			ties = [][]string{{tensors[0], tensors[len(tensors)-1]}}
		}
		g, err := modelgraph.New("näme", layers, ties)
		if err != nil {
			t.Fatal(err)
		}
		g.Unknown = rapid.SliceOfN(rapid.SampledFrom([]string{"rope \"x\"", ""}), 0, 2).Draw(t, "unknown")
		g.MaxSeq = rapid.Int64Range(0, 1<<40).Draw(t, "longest")
		rewrite(t, g)
	})
}
