package estimate

import (
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// linear is a weight [out, in] of a torch.nn.Linear (or of GPT-2's Conv1D,
// which has it transposed).
type linear struct {
	module  string // full path
	below   string // path below the layer's
	in, out int64
	// head: the output head, which quantisers and "all-linear" leave out.
	head bool
}

// linears finds the linear layers of a graph by their weights.
func linears(g *modelgraph.Graph) map[*modelgraph.Tensor]linear {
	out := make(map[*modelgraph.Tensor]linear)
	for i := range g.Layers {
		l := &g.Layers[i]
		if !hasLinears(l.Op) {
			continue
		}
		for j := range l.Params {
			t := &l.Params[j]
			below, weight := strings.CutSuffix(t.Name, "weight")
			below, dotted := strings.CutSuffix(below, ".")
			if !weight || !dotted && below != "" || len(t.Shape) != 2 || !t.DType.Float() || otherModule(l.Op, below) {
				continue
			}
			_, head := l.Op.(modelgraph.Head)
			n := linear{module: modelgraph.FullName(l.Name, below), below: below, in: t.Shape[1], out: t.Shape[0], head: head}
			if g.Family == "gpt2" && !head {
				n.in, n.out = n.out, n.in
			}
			out[t] = n
		}
	}
	return out
}

func hasLinears(op modelgraph.Op) bool {
	switch op.(type) {
	case modelgraph.Attention, modelgraph.MLP, modelgraph.MoE, modelgraph.Linear, modelgraph.StateSpace, modelgraph.Head:
		return true
	}
	return false
}

// otherModule reports matrices that are not a Linear's: routers hold a bare
// parameter (modeling_mixtral.py, MixtralTopKRouter), T5's position bias is an
// embedding.
func otherModule(op modelgraph.Op, below string) bool {
	if _, ok := op.(modelgraph.MoE); ok && (below == "gate" || below == "router") {
		return true
	}
	return strings.HasSuffix(below, "relative_attention_bias")
}
