package hf

import "github.com/devmap-dev/devmap/modelgraph"

// feedForward is gate_proj, up_proj, down_proj; fused, the first two are one
// gate_up_proj.
type feedForward struct {
	dim, hidden int64
	bias, fused bool
	activation  string
}

// gatedMLP reads intermediate_size and hidden_act with the family's defaults.
func gatedMLP(cfg *config, dim, hidden int64, activation string) feedForward {
	return feedForward{dim: dim, hidden: cfg.pos(hidden, "intermediate_size"), activation: cfg.str(activation, "hidden_act")}
}

func (ffn feedForward) part() part {
	op := modelgraph.MLP{Dim: ffn.dim, Hidden: ffn.hidden, Gated: true, Fused: ffn.fused, Activation: ffn.activation}
	return part{op: op, params: modelgraph.Params(op, func(string) bool { return ffn.bias })}
}
