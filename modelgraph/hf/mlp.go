package hf

import "github.com/devmap-dev/devmap/modelgraph"

// mlp is gate_proj, up_proj, down_proj; fused, the first two are one
// gate_up_proj.
type mlp struct {
	dim, hidden int64
	bias, fused bool
	activation  string
}

// gatedMLP reads intermediate_size and hidden_act with the family's defaults.
func gatedMLP(c *config, dim, hidden int64, activation string) mlp {
	return mlp{dim: dim, hidden: c.pos(hidden, "intermediate_size"), activation: c.str(activation, "hidden_act")}
}

func (m mlp) part() part {
	op := modelgraph.MLP{Dim: m.dim, Hidden: m.hidden, Gated: true, Fused: m.fused, Activation: m.activation}
	return part{op: op, params: modelgraph.Params(op, func(string) bool { return m.bias })}
}
