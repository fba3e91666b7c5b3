package modelgraph

import (
	"slices"
	"strings"
)

// Projection is a weight [Out, In] of a torch.nn.Linear (or of GPT-2's Conv1D,
// which has it transposed).
type Projection struct {
	Param  int    // index in the layer's Params
	Module string // full path
	Below  string // path below the layer's
	In     int64
	Out    int64
	// Head: it makes the logits. Output: the last one of attention or of a
	// feed-forward network, whose result joins the residual stream. Up: the
	// one of a gated network that passes no activation.
	Head, Output, Up bool
}

// These are what frameworks' modules call those
// projections that dimensions do not tell from others of the same shape.
var (
	attentionOutputs = []string{"o_proj", "out_proj", "wo", "proj", "projection_layer", "dense", "c_proj", "o"}
	squareMLPOutputs = []string{"down_proj", "w2", "fc2", "wo", "c_proj", "dense_4h_to_h", "dense"}
	gatedUps         = []string{"up_proj", "w3", "wi_1"}
)

// Projections are the linear layers among the parameters of layer i.
func (g *Graph) Projections(i int) []Projection {
	l := &g.Layers[i]
	if !hasProjections(l.Op) {
		return nil
	}
	var out []Projection
	for j := range l.Params {
		t := &l.Params[j]
		below, weight := strings.CutSuffix(t.Name, "weight")
		below, dotted := strings.CutSuffix(below, ".")
		if !weight || !dotted && below != "" || len(t.Shape) != 2 || !t.DType.Float() || otherModule(l.Op, below) {
			continue
		}
		_, head := l.Op.(Head)
		p := Projection{Param: j, Module: FullName(l.Name, below), Below: below, In: t.Shape[1], Out: t.Shape[0], Head: head}
		if g.Family == "gpt2" && !head {
			p.In, p.Out = p.Out, p.In
		}
		p.role(l.Op)
		out = append(out, p)
	}
	return out
}

// role says where the projection stands in its op.
func (p *Projection) role(op Op) {
	leaf := p.Below[strings.LastIndexByte(p.Below, '.')+1:]
	switch op := op.(type) {
	case Attention:
		p.Output = slices.Contains(attentionOutputs, leaf)
	case MLP:
		p.Output = p.In == op.Hidden
		if op.Dim == op.Hidden {
			p.Output = slices.Contains(squareMLPOutputs, leaf)
		}
		p.Up = slices.Contains(gatedUps, leaf)
	}
}

func hasProjections(op Op) bool {
	switch op.(type) {
	case Attention, MLP, MoE, Linear, StateSpace, Head:
		return true
	}
	return false
}

// otherModule reports matrices that are not a Linear's: routers hold a bare
// parameter (modeling_mixtral.py, MixtralTopKRouter), T5's position bias is an
// embedding.
func otherModule(op Op, below string) bool {
	if _, ok := op.(MoE); ok && (below == "gate" || below == "router") {
		return true
	}
	return strings.HasSuffix(below, "relative_attention_bias")
}
