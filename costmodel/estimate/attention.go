package estimate

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// widestFlash is the widest head of the flash-attn package's kernels
// (csrc/flash_attn/flash_api.cpp, mha_fwd).
const widestFlash = 256

// checkFlash refuses the flash-attn package where it has no kernel
// (transformers/modeling_flash_attention_utils.py), or none that is modelled.
func checkFlash(g *modelgraph.Graph, w *costmodel.Workload) error {
	if w.Attention != costmodel.FlashAttention || w.Mode == costmodel.Load {
		return nil
	}
	no := func(format string, args ...any) error {
		return refuse("attention", w.Attention, "flash-attn %s: %v takes it", fmt.Sprintf(format, args...), costmodel.Set("attention", costmodel.SDPA))
	}
	switch {
	case w.Precision == costmodel.FP32True:
		return no("computes in 16 bits alone, not %s", w.Precision)
	case w.Recompute == costmodel.RecomputeSelective && w.Mode == costmodel.Train:
		return no("is not on the list of kernels whose outputs selective recompute keeps")
	}
	for i := range g.Layers {
		op, ok := g.Layers[i].Op.(modelgraph.Attention)
		switch name := g.Layers[i].Name; {
		case !ok:
		case op.Eager:
			return refuse("attention", w.Attention, "flash-attn has no place for what layer %q adds to its scores: %v is what the model has", name, costmodel.Set("attention", costmodel.EagerAttention))
		case op.KVRank > 0:
			return no("is not modelled for the latent attention of layer %q", name)
		case op.HeadDim > widestFlash:
			return no("takes heads of %d at most, and layer %q has %d", widestFlash, name, op.HeadDim)
		}
	}
	return nil
}
