package reserve

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/replay"
	"github.com/devmap-dev/devmap/modelgraph"
)

// attention is that of a layer whose kernel is a flash one, in the forms that
// are followed.
func (out *Decoder) attention(i int, op *modelgraph.Attention) (replay.Layer, bool) {
	layer := &out.layers.Layers[i]
	other := op.Eager || op.Cross || op.Bidirectional || op.Gated || op.SharedKV || op.KVRank > 0 || op.ValueDim > 0 || op.InDim > 0 ||
		op.IndexHeads > 0 || op.LayerScale || op.Dropout || op.QKNormWhole || op.Packed || op.ScoreBias != "" || !op.Rope
	flash, efficient, masked := ops.Kernel(layer.Op, &layer.Shape)
	if other || op.SoftCap || !flash && !efficient && (op.Fused || out.layers.Rules.Compute != costmodel.FP32True) {
		return nil, false
	}
	by := replay.Flash
	switch {
	case efficient:
		by = replay.Efficient
	case !flash:
		by = replay.Math
	}
	attention := &replay.Attention{By: by, Masked: masked, Fused: op.Fused, Heads: op.Heads, KVHeads: op.KVHeads, HeadDim: op.HeadDim, Rope: op.Rope}
	linears := out.linears(i)
	switch {
	case op.Fused && len(linears) == 2:
		attention.Query, attention.Output = linears[0], linears[1]
	case !op.Fused && len(linears) == 4:
		attention.Query, attention.Key, attention.Value, attention.Output = linears[0], linears[1], linears[2], linears[3]
	default:
		return nil, false
	}
	if op.QKNorm != "" {
		if op.QKNorm == modelgraph.LayerNorm || op.Fused {
			return nil, false
		}
		gemma := op.QKNorm == modelgraph.GemmaRMSNorm
		attention.QueryNorm = &replay.Norm{Width: op.Heads * op.HeadDim, Rows: op.Heads, Parts: ops.ReduceBuffer(layer.Shape.Tokens*op.Heads, op.HeadDim), Weight: out.param(layer, "q_norm.weight"), Gemma: gemma}
		attention.KeyNorm = &replay.Norm{Width: op.KVHeads * op.HeadDim, Rows: op.KVHeads, Parts: ops.ReduceBuffer(layer.Shape.Tokens*op.KVHeads, op.HeadDim), Weight: out.param(layer, "k_norm.weight"), Gemma: gemma}
		if attention.QueryNorm.Weight == nil || attention.KeyNorm.Weight == nil {
			return nil, false
		}
	}
	return attention, true
}

func (out *Decoder) mlp(i int, op *modelgraph.MLP) (replay.Layer, bool) {
	if op.LayerScale || op.Dropout || !op.Gated {
		return nil, false
	}
	mlp := &replay.MLP{Hidden: op.Hidden, Fused: op.Fused}
	for _, linear := range out.linears(i) {
		switch {
		case linear.In == op.Hidden && op.Hidden != op.Dim:
			mlp.Down = linear
		case mlp.Gate == nil:
			mlp.Gate = linear
		default:
			mlp.Up = linear
		}
	}
	ok := mlp.Down != nil && mlp.Gate != nil && op.Fused == (mlp.Up == nil)
	return mlp, ok
}
