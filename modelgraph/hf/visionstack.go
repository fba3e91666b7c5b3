package hf

import (
	"cmp"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// visionStack is the blocks of a vision transformer: attention and MLP, a norm before each. Towers
// differ in the modules' names and order.
type visionStack struct {
	dim, layers int64
	norm        modelgraph.NormStyle
	attention   func(layer int64) part
	mlp         part

	attnNorm, attn, mlpNorm, mlpName string

	order  []string // those four as the framework registers them
	scales []string // LayerScale vectors, bare parameters of the block
	// scaleDim is their length; 0: dim.
	scaleDim int64
	// between are modules in order outside the four (vectors that scale).
	between map[string]part
}

// build adds the blocks at path.0, path.1, …, and returns the layers with the hidden state: before
// the first block, and after each. split makes each block a wrap unit. The first block also reads
// extra: bare parameters that are added to the patches or put before them.
func (v *visionStack) build(modules *builder, path string, split bool, extra ...string) []string {
	states := []string{modules.hidden}
	for i := range v.layers {
		name := indexed(path, i)
		add := func() { v.block(modules, name, i, extra) }
		if split {
			modules.unit(name, add)
		} else {
			add()
		}
		extra = nil
		states = append(states, modules.hidden)
	}
	return states
}

func (v *visionStack) block(modules *builder, name string, i int64, extra []string) {
	for _, scale := range v.scales {
		modules.add(dot(name, scale), modelgraph.Parameter{}, nil, tensor("", cmp.Or(v.scaleDim, v.dim)))
	}
	attn, residual := v.attention(i), modules.hidden
	norm := part{op: modelgraph.Norm{Dim: v.dim, Style: v.norm}, params: styleParams(v.norm, v.dim)}
	parts := map[string]part{v.attnNorm: norm, v.attn: attn, v.mlpNorm: norm, v.mlpName: v.mlp}
	full := func(module string) string { return dot(name, module) }
	inputs := map[string][]string{
		v.attnNorm: append([]string{residual}, extra...),
		v.attn:     {full(v.attnNorm), residual},
		v.mlpNorm:  {full(v.attn)},
		v.mlpName:  {full(v.mlpNorm), full(v.attn)},
	}
	for _, module := range v.order {
		p, ok := parts[module]
		if !ok {
			p = v.between[module]
		}
		modules.add(full(module), p.op, inputs[module], slices.Clone(p.params)...).Buffers = slices.Clone(p.buffers)
	}
	modules.hidden = full(v.mlpName)
}

// hiddenState picks the state of a field such as select_layer: -1 is the last (a Python index), 0
// the input of the first block.
func hiddenState(cfg *config, name string, states []string) string {
	return stateAt(cfg, name, states, cfg.float(-1, name))
}

func stateAt(cfg *config, name string, states []string, k float64) string {
	count := int64(len(states))
	if k != float64(int64(k)) || int64(k) < -count || int64(k) >= count {
		cfg.fail(name, "%v is not one of the %d hidden states of the vision tower", k, count)
		return states[count-1]
	}
	return states[(int64(k)+count)%count]
}
