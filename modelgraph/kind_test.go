package modelgraph_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// TestUnitKinds counts the units of each kind: of a decoder, of one with layers that
// are an MLP alone or left out, of encoder–decoders, of a model with a tower.
func TestUnitKinds(t *testing.T) {
	for name, want := range map[string]map[string]int{
		"llama-3.2-1b":                     {"embedding": 1, "decoder-layer": 16, "norm": 1, "rotary": 1, "head": 1},
		"mamba-2.8b":                       {"embedding": 1, "decoder-layer": 64, "norm": 1, "head": 1},
		"llama-3_1-nemotron-ultra-253b-v1": {"embedding": 1, "decoder-layer": 162, "norm": 1, "rotary": 1, "head": 1},
		"t5-11b":                           {"embedding": 2, "encoder-layer": 24, "decoder-layer": 24, "norm": 2, "head": 1, "": 1},
		"bert-large":                       {"embedding": 1, "encoder-layer": 24, "norm": 1, "head": 1, "": 2},
		"qwen2.5-vl-3b":                    {"embedding": 1, "tower": 37, "decoder-layer": 36, "norm": 1, "rotary": 1, "head": 1},
		"pi0":                              {"": 7},
	} {
		graph, err := load.Model(name, load.Options{BuiltIn: fixtures.Models()})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for i := range graph.Units {
			got[graph.Units[i].Kind]++
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestUnitKindOfList: a block passes its kind on to entries of the same module list
// alone, and layers that read an encoder alone are the decoder's.
func TestUnitKindOfList(t *testing.T) {
	declared := modelgraph.NotDeclared()
	declared.ParamsBytes = 8
	attention := modelgraph.Attention{Dim: 8, Heads: 1, KVHeads: 1, HeadDim: 8, Bidirectional: true}
	cross := attention
	cross.Cross = true
	graph, err := modelgraph.New("m", []modelgraph.Layer{
		{Name: "h.0", Op: cross, Declared: &declared},
		{Name: "h.1", Op: modelgraph.Opaque{}},
		{Name: "g.1", Op: modelgraph.Opaque{}},
		{Name: "block0", Op: attention, Declared: &declared},
		{Name: "block1", Op: modelgraph.Opaque{}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for i := range graph.Units {
		kinds = append(kinds, graph.Units[i].Kind)
	}
	if got := strings.Join(kinds, ","); got != "decoder-layer,decoder-layer,,encoder-layer," {
		t.Errorf("kinds %s", got)
	}
}
