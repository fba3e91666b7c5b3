package layers

import (
	"fmt"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// TestProjections: which weights are linear layers, their orientation, and which lead back to the
// residual stream, by dimensions if these differ.
func TestProjections(t *testing.T) {
	weight := func(name string, out, in int64) modelgraph.Tensor {
		tensor, err := modelgraph.NewTensor(name, modelgraph.BF16, out, in)
		if err != nil {
			t.Fatal(err)
		}
		return tensor
	}
	attention := modelgraph.Attention{Dim: 8, Heads: 2, KVHeads: 2, HeadDim: 4}
	for _, c := range []struct {
		family string
		op     modelgraph.Op
		param  modelgraph.Tensor
		want   string // module, in → out, and its kind
	}{
		{"llama", attention, weight("q_proj.weight", 8, 8), "a.q_proj 8 8 head=false output=false up=false"},
		{"llama", attention, weight("o_proj.weight", 8, 8), "a.o_proj 8 8 head=false output=true up=false"},
		{"gpt2", attention, weight("c_attn.weight", 8, 24), "a.c_attn 8 24 head=false output=false up=false"},
		{"t5", attention, weight("relative_attention_bias.weight", 32, 2), ""},
		{"llama", attention, weight("q_proj.bias", 8, 1), ""},
		{"", modelgraph.MLP{Dim: 8, Hidden: 16}, weight("any.weight", 8, 16), "a.any 16 8 head=false output=true up=false"},
		{"", modelgraph.MLP{Dim: 8, Hidden: 16, Gated: true}, weight("up_proj.weight", 16, 8), "a.up_proj 8 16 head=false output=false up=true"},
		{"", modelgraph.MLP{Dim: 8, Hidden: 8}, weight("fc1.weight", 8, 8), "a.fc1 8 8 head=false output=false up=false"},
		{"", modelgraph.MLP{Dim: 8, Hidden: 8}, weight("fc2.weight", 8, 8), "a.fc2 8 8 head=false output=true up=false"},
		{"mixtral", modelgraph.MoE{Dim: 8, Hidden: 16, Experts: 4, TopK: 2}, weight("gate.weight", 4, 8), ""},
		{"", modelgraph.Head{Dim: 8, Vocab: 32}, weight("weight", 32, 8), "a 8 32 head=true output=false up=false"},
		{"", modelgraph.Embedding{Vocab: 32, Dim: 8}, weight("weight", 32, 8), ""},
	} {
		graph := &modelgraph.Graph{Family: c.family, Layers: []modelgraph.Layer{{Name: "a", Op: c.op, Params: []modelgraph.Tensor{c.param}}}}
		got := ""
		for _, p := range Projections(graph, 0) {
			got += fmt.Sprintf("%s %d %d head=%t output=%t up=%t", p.Module, p.In, p.Out, p.Head, p.Output, p.Up)
		}
		if got != c.want {
			t.Errorf("%s of %T: %q, want %q", c.param.Name, c.op, got, c.want)
		}
	}
}
