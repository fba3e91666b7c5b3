package hf

import "github.com/devmap-dev/devmap/modelgraph"

// feedForward is gate_proj, up_proj, down_proj; fused, the first two are one gate_up_proj.
type feedForward struct {
	dim, hidden int64
	bias, fused bool
	dropout     bool // of the result
	activation  string
	// up and down are the names of a feed-forward without a gate; empty: it has one.
	up, down string
	more     int64               // Extra of [modelgraph.MLP]
	extra    []modelgraph.Tensor // after the projections
}

// gatedMLP reads intermediate_size and hidden_act with the family's defaults.
func gatedMLP(cfg *config, dim, hidden int64, activation string) feedForward {
	return feedForward{dim: dim, hidden: cfg.pos(hidden, "intermediate_size"), activation: cfg.str(activation, "hidden_act")}
}

func (ffn feedForward) part() part {
	if ffn.up != "" {
		op := modelgraph.MLP{Dim: ffn.dim, Hidden: ffn.hidden, Activation: ffn.activation, Extra: ffn.more, Dropout: ffn.dropout}
		return part{op: op, params: join(linearParams(ffn.up, ffn.dim, ffn.hidden, ffn.bias), linearParams(ffn.down, ffn.hidden, ffn.dim, ffn.bias), ffn.extra)}
	}
	op := modelgraph.MLP{Dim: ffn.dim, Hidden: ffn.hidden, Gated: true, Fused: ffn.fused, Activation: ffn.activation, Extra: ffn.more, Dropout: ffn.dropout}
	return part{op: op, params: append(modelgraph.Params(op, func(string) bool { return ffn.bias }), ffn.extra...)}
}

// under are the tensors of the feed-forward in a module of that name.
func (ffn feedForward) under(name string) []modelgraph.Tensor {
	params := ffn.part().params
	for i := range params {
		params[i].Name = dot(name, params[i].Name)
	}
	return params
}
