package reserve

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/replay"
	"github.com/devmap-dev/devmap/modelgraph"
)

// otherForm reports attention in a form that is not followed.
func otherForm(op *modelgraph.Attention) bool {
	for _, other := range []bool{
		op.KVRank > 0, op.ValueDim > 0, op.InDim > 0, op.IndexHeads > 0,
		op.Cross, op.SharedKV, op.Packed, op.Turning > 0,
		op.Gated, op.LayerScale, op.InnerDropout, op.ScoreBias != "",
		op.Eager, op.QKNorm == modelgraph.LayerNorm, op.QKNorm != "" && op.Fused,
	} {
		if other {
			return true
		}
	}
	return false
}

// kernel is what computes a layer's attention; it reports whether that is
// followed: the math kernel's casts in 16 bits are not.
func (out *Decoder) kernel(layer *layers.Layer, fused bool) (by replay.Kernel, masked, ok bool) {
	flash, efficient, masked := ops.Kernel(layer.Op, &layer.Shape)
	switch {
	case flash:
		return replay.Flash, masked, true
	case efficient:
		return replay.Efficient, masked, true
	}
	return replay.Math, masked, !fused && out.layers.Rules.Compute == costmodel.FP32True
}

// attention is a layer's attention, if its form is followed.
func (out *Decoder) attention(i int, op *modelgraph.Attention) (replay.Layer, bool) {
	layer := &out.layers.Layers[i]
	by, masked, ok := out.kernel(layer, op.Fused)
	if !ok || otherForm(op) {
		return nil, false
	}
	out.wider = out.wider || !usual(op)
	attention := &replay.Attention{By: by, Masked: masked, Fused: op.Fused, Heads: op.Heads, KVHeads: op.KVHeads, HeadDim: op.HeadDim, Rope: op.Rope}
	attention.Turn = turnOf(op)
	linears := out.linears(i)
	switch {
	case op.Fused && len(linears) == 2:
		attention.Query, attention.Output = linears[0], linears[1]
	case !op.Fused && len(linears) == 4:
		attention.Query, attention.Key, attention.Value, attention.Output = linears[0], linears[1], linears[2], linears[3]
	default:
		return nil, false
	}
	if op.QKNorm == "" {
		return attention, true
	}
	out.headNorms(attention, layer, op)
	return attention, attention.QueryNorm.Weight != nil && attention.KeyNorm.Weight != nil
}

// usual reports a decoder's attention that is followed wherever requests matter.
func usual(op *modelgraph.Attention) bool {
	return op.Rope && !op.Bidirectional && !op.Dropout && !op.QKNormWhole && turnOf(op) == replay.TurnAsIs
}

// headNorms are the norms of q and k.
func (out *Decoder) headNorms(attention *replay.Attention, layer *layers.Layer, op *modelgraph.Attention) {
	names := [2]string{"q_norm.weight", "k_norm.weight"}
	if out.param(layer, names[0]) == nil { // modeling_lfm2.py
		names = [2]string{"q_layernorm.weight", "k_layernorm.weight"}
	}
	attention.QueryNorm, attention.KeyNorm = out.headNorm(layer, names[0], op.Heads, op), out.headNorm(layer, names[1], op.KVHeads, op)
}

// turnOf is the type in which q and k turn.
func turnOf(op *modelgraph.Attention) replay.Turn {
	switch {
	case op.CastRotation:
		return replay.TurnCast
	case op.FP32Rotation:
		return replay.TurnWide
	}
	return replay.TurnAsIs
}

// headNorm is a normalisation of each of so many heads.
func (out *Decoder) headNorm(layer *layers.Layer, weight string, heads int64, op *modelgraph.Attention) *replay.Norm {
	norm := &replay.Norm{
		Width: heads * op.HeadDim, Rows: heads, Parts: ops.ReduceBuffer(layer.Shape.Tokens*heads, op.HeadDim),
		Weight: out.param(layer, weight), Gemma: op.QKNorm == modelgraph.GemmaRMSNorm || op.QKNormFP32,
	}
	if op.QKNormWhole {
		norm.Rows, norm.Parts = 1, ops.ReduceBuffer(layer.Shape.Tokens, heads*op.HeadDim)
	}
	return norm
}

func (out *Decoder) mlp(i int, op *modelgraph.MLP) (replay.Layer, bool) {
	plain := ops.OneKernel(op.Activation) && !ops.KeepsOutput(op.Activation)
	if op.LayerScale || op.InnerDropout {
		return nil, false
	}
	mlp := &replay.MLP{Hidden: op.Hidden, Fused: op.Fused, KeepsResult: ops.KeepsOutput(op.Activation)}
	if !plain && !mlp.KeepsResult {
		mlp.Extra = ops.ActivationTensors(op.Activation) - 1
	}
	out.wider = out.wider || !plain && !op.Gated || op.Dropout || op.Extra > 0
	out.rolesOf(i, mlp)
	ok := mlp.Down != nil && mlp.Gate != nil && (op.Fused || !op.Gated) == (mlp.Up == nil)
	return mlp, ok
}

// rolesOf gives a feed-forward network its linear layers.
func (out *Decoder) rolesOf(i int, mlp *replay.MLP) {
	projections := layers.Projections(out.layers.Graph, i)
	for k, linear := range out.linears(i) {
		switch {
		case projections[k].Output:
			mlp.Down = linear
		case mlp.Gate == nil && !projections[k].Up:
			mlp.Gate = linear
		default:
			mlp.Up = linear
		}
	}
}
