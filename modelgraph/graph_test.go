package modelgraph_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/devmap-dev/devmap/modelgraph"
)

// layer is one with a weight of n elements.
func layer(name, unit string, n int64, inputs ...string) modelgraph.Layer {
	return modelgraph.Layer{
		Name: name, Unit: unit, Inputs: inputs,
		Params: []modelgraph.Tensor{{Name: "weight", Shape: []int64{n}, DType: modelgraph.BF16}},
	}
}

func graph(t *testing.T, ties [][]string, layers ...modelgraph.Layer) *modelgraph.Graph {
	t.Helper()
	g, err := modelgraph.New("m", layers, ties)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestExecOrder: a block's layers run by data flow, whatever their module order
// (norms follow what reads them).
func TestExecOrder(t *testing.T) {
	g := graph(t, nil,
		layer("embed", "", 1),
		layer("h.attn", "h", 1, "h.norm1", "embed"),
		layer("h.mlp", "h", 1, "h.norm2", "h.attn"),
		layer("h.norm1", "h", 1, "embed"),
		layer("h.norm2", "h", 1, "h.attn"),
		layer("head", "", 1, "h.mlp"))
	var got []string
	for u := range g.Units {
		for _, i := range g.Units[u].Exec {
			got = append(got, g.Layers[i].Name)
		}
	}
	if d := cmp.Diff([]string{"embed", "h.norm1", "h.attn", "h.norm2", "h.mlp", "head"}, got); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
	if d := cmp.Diff([][]int{nil, {0}, {1}}, [][]int{g.Units[0].Inputs, g.Units[1].Inputs, g.Units[2].Inputs}); d != "" {
		t.Errorf("inputs of units (-want +got):\n%s", d)
	}
}

// TestUnitKeys: a key of a device map names its unit alone.
func TestUnitKeys(t *testing.T) {
	for _, c := range []struct {
		name   string
		layers []modelgraph.Layer
		want   string
	}{
		{"a module of its own", []modelgraph.Layer{layer("h.0.a", "h.0", 1), layer("h.0.b", "h.0", 1), layer("h.1", "", 1)}, "[h.0] [h.1]"},
		{"no module holds them", []modelgraph.Layer{layer("a", "both", 1), layer("b", "both", 1)}, "[a b]"},
		{"another unit in the module", []modelgraph.Layer{layer("h.a", "h", 1), layer("h.b", "h", 1), layer("h.c", "", 1)}, "[h.a h.b] [h.c]"},
		{"a layer inside another", []modelgraph.Layer{layer("a", "u", 1), layer("a.b", "u", 1)}, "[a]"},
		{"a unit inside a layer", []modelgraph.Layer{layer("a", "", 1), layer("a.b", "", 1)}, "[a.weight] [a.b]"},
		{"name and prefix", []modelgraph.Layer{layer("h.1", "", 1), layer("h.10", "", 1)}, "[h.1] [h.10]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := graph(t, nil, c.layers...)
			var got []string
			for u := range g.Units {
				got = append(got, fmt.Sprint(g.Units[u].Keys))
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("keys %s, want %s", s, c.want)
			}
		})
	}
}

// TestTiedUnits: groups that meet in a unit are one set, since the unit is on
// one device; a tie inside one unit binds nothing.
func TestTiedUnits(t *testing.T) {
	units := func(n int) []modelgraph.Layer {
		var ls []modelgraph.Layer
		for i := range n {
			ls = append(ls, layer(fmt.Sprintf("u%d.a", i), fmt.Sprintf("u%d", i), 4), layer(fmt.Sprintf("u%d.b", i), fmt.Sprintf("u%d", i), 4))
		}
		return ls
	}
	name := func(s string) string { return "u" + s + ".weight" }
	for _, c := range []struct {
		ties [][]string
		want [][]int
	}{
		{nil, nil},
		{[][]string{{name("0.a"), name("0.b")}}, nil},
		{[][]string{{name("4.a"), name("0.a")}}, [][]int{{0, 4}}},
		{[][]string{{name("0.a"), name("2.a")}, {name("1.a"), name("3.a")}}, [][]int{{0, 2}, {1, 3}}},
		{[][]string{{name("0.a"), name("2.a")}, {name("2.b"), name("5.a")}}, [][]int{{0, 2, 5}}},
		{[][]string{{name("0.a"), name("1.a")}, {name("2.a"), name("3.a")}, {name("1.b"), name("2.b")}}, [][]int{{0, 1, 2, 3}}},
		{[][]string{{name("0.a"), name("1.a")}, {name("0.a"), name("2.a")}}, [][]int{{0, 1, 2}}},
	} {
		g := graph(t, c.ties, units(6)...)
		if d := cmp.Diff(c.want, g.TiedUnits()); d != "" {
			t.Errorf("ties %v (-want +got):\n%s", c.ties, d)
		}
	}
	if n := graph(t, [][]string{{name("0.a"), name("1.a")}}, units(2)...).ParamCount(); n != 12 {
		t.Errorf("%d parameters, want 12: the tied one counts once", n)
	}
}

// TestDigest: it changes with what the model is and not with where it lies.
func TestDigest(t *testing.T) {
	make2 := func(change func(ls []modelgraph.Layer, ties *[][]string)) *modelgraph.Graph {
		ls, ties := []modelgraph.Layer{layer("a", "", 4), layer("b", "", 4), layer("c", "", 4)}, [][]string(nil)
		change(ls, &ties)
		return graph(t, ties, ls...)
	}
	base := make2(func([]modelgraph.Layer, *[][]string) {})
	if d := base.Digest(); !strings.HasPrefix(d, "sha256:") || len(d) != 7+64 {
		t.Errorf("digest %q", d)
	}
	seen := map[string]string{base.Digest(): "the base"}
	for name, change := range map[string]func(ls []modelgraph.Layer, ties *[][]string){
		"layer name":  func(ls []modelgraph.Layer, _ *[][]string) { ls[1].Name = "B" },
		"tensor name": func(ls []modelgraph.Layer, _ *[][]string) { ls[1].Params[0].Name = "bias" },
		"shape":       func(ls []modelgraph.Layer, _ *[][]string) { ls[1].Params[0].Shape = []int64{2, 2} },
		"type":        func(ls []modelgraph.Layer, _ *[][]string) { ls[1].Params[0].DType = modelgraph.F32 },
		"unit":        func(ls []modelgraph.Layer, _ *[][]string) { ls[1].Unit, ls[2].Unit = "u", "u" },
		"buffer":      func(ls []modelgraph.Layer, _ *[][]string) { ls[1].Buffers, ls[1].Params = ls[1].Params, nil },
		"tie":         func(_ []modelgraph.Layer, ties *[][]string) { *ties = [][]string{{"a.weight", "c.weight"}} },
		"other tie":   func(_ []modelgraph.Layer, ties *[][]string) { *ties = [][]string{{"a.weight", "b.weight"}} },
	} {
		d := make2(change).Digest()
		if other, ok := seen[d]; ok {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[d] = name
	}
	place := make2(func(ls []modelgraph.Layer, _ *[][]string) {
		ls[0].Params[0].Parts = []modelgraph.Part{{Name: "x", File: "f", End: 8}}
	})
	place.Source, place.Name = "elsewhere", "n"
	if place.Digest() != base.Digest() {
		t.Error("the digest changes with the place")
	}
}

// TestScalars: the fingerprint distinguishes constants, which the digest does
// not, and not the place.
func TestScalars(t *testing.T) {
	made := func(epsilon float64, inputs ...string) *modelgraph.Graph {
		first := modelgraph.Layer{Name: "a", Op: modelgraph.Norm{Dim: 4, Epsilon: 1e-5}}
		return graph(t, nil, first, modelgraph.Layer{Name: "b", Op: modelgraph.Norm{Dim: 4, Epsilon: epsilon}}, modelgraph.Layer{Name: "c", Op: modelgraph.Norm{Dim: 4}, Inputs: inputs})
	}
	base, other := made(1e-5, "b"), made(1e-6, "b")
	if base.Digest() != other.Digest() || base.Scalars() == other.Scalars() {
		t.Error("an epsilon changes the digest, or not the scalars")
	}
	if base.Scalars() == made(1e-5, "a").Scalars() {
		t.Error("what a layer reads does not change the scalars")
	}
	other = made(1e-5, "b")
	other.Name, other.Source = "n", "elsewhere"
	if base.Scalars() != other.Scalars() {
		t.Error("the place changes the scalars")
	}
}

// TestNewChecksOps: a graph built in code is checked against the rules of the
// file.
func TestNewChecksOps(t *testing.T) {
	for want, op := range map[string]modelgraph.Op{
		`layers[0].op: op "mlp": hidden is -1`:     modelgraph.MLP{Dim: 4, Hidden: -1},
		`layers[0].op: op "linear" is a ptr`:       &modelgraph.Linear{In: 4, Out: 4},
		`layers[0].op: op "norm": unknown norm st`: modelgraph.Norm{Dim: 4, Style: "odd"},
	} {
		_, err := modelgraph.New("m", []modelgraph.Layer{{Name: "a", Op: op}}, nil)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s…", err, want)
		}
	}
}
