package recipe

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// check refuses workloads that the engine has no kernels for.
func (m *model) check() error {
	workload := m.workload
	switch workload.Precision {
	case costmodel.FP32True, costmodel.BF16True, costmodel.BF16Mixed:
	default:
		return refuse("precision", workload.Precision, "devmap's engine has no fp16; %v", costmodel.Set("precision", costmodel.BF16True))
	}
	return nil
}

func refuse(field string, value any, format string, args ...any) error {
	return costmodel.Refuse(costmodel.Set(field, value), format, args...)
}

// unrunnable is the error that a layer has no kernels.
func unrunnable(layer *modelgraph.Layer, format string, args ...any) error {
	return fmt.Errorf("layer %q: devmap's engine cannot run it: %s", layer.Name, fmt.Sprintf(format, args...))
}

func (p *parser) unknown(layer *modelgraph.Layer, op modelgraph.Op) error {
	return unrunnable(layer, "it has no kernels for %s", strings.TrimPrefix(fmt.Sprintf("%T", op), "modelgraph."))
}

func (p *parser) notAChain(index int) error {
	layer := &p.graph.Layers[index]
	return unrunnable(layer, "it reads %q, and a layer must read the hidden stream, or a norm of it, and be added to it", layer.Inputs)
}

// storage reports a layer without an operation whose parameters other layers
// run, as they are tied to them (BERT's prediction bias).
func (m *model) storage(layer *modelgraph.Layer) bool { return false }

// attends refuses attention that no kernel computes.
func (m *model) attends(layer int, op *modelgraph.Attention) error {
	at := &m.graph.Layers[layer]
	switch {
	case op.KVRank > 0:
		return unrunnable(at, "it has no kernels for multi-head latent attention")
	case op.Cross:
		return unrunnable(at, "it has no kernels for cross-attention")
	case op.ScoreBias != "" || op.Eager:
		return unrunnable(at, "its attention adds no bias %q to scores", op.ScoreBias)
	case op.ValueDim != 0 && op.ValueDim != op.HeadDim:
		return unrunnable(at, "its attention takes values as wide as keys, %d, not %d", op.HeadDim, op.ValueDim)
	case op.QKNormWhole:
		return unrunnable(at, "it norms q and k by head, not over all heads at once")
	case op.LayerScale:
		return unrunnable(at, "it has no kernel for a layer scale")
	case op.KVHeads == 0 || op.Heads%op.KVHeads != 0:
		return unrunnable(at, "%d heads are no multiple of %d KV heads", op.Heads, op.KVHeads)
	}
	if op.Rope {
		if _, _, err := op.Frequencies(m.seq + m.workload.NewTokens); err != nil {
			return unrunnable(at, "%v", err)
		}
	}
	return nil
}

// heads refuses heads without a loss or a position here.
func (m *model) heads(layer int, op *modelgraph.Head) error { return nil }

// indexes refuses rows that nothing says how to look up.
func (m *model) indexes(layer int, op *modelgraph.Embedding) error { return nil }
