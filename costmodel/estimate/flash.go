package estimate

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// widestFlash is the widest head of the flash-attn package's kernels
// (csrc/flash_attn/flash_api.cpp, mha_fwd).
const widestFlash = 256

// checkFlash refuses --attention flash where the package has no kernel
// (transformers/modeling_flash_attention_utils.py), or none that is modelled.
func checkFlash(g *modelgraph.Graph, w *costmodel.Workload) error {
	if w.Attention != costmodel.FlashAttention || w.Mode == costmodel.Load {
		return nil
	}
	refuse := func(format string, args ...any) error {
		return &costmodel.FieldError{Field: "attention", Msg: costmodel.Messagef("flash-attn %s: %v takes it", fmt.Sprintf(format, args...), costmodel.Set("attention", "sdpa"))}
	}
	switch {
	case w.Precision == costmodel.FP32True:
		return refuse("computes in 16 bits alone, not %s", w.Precision)
	case w.Recompute == costmodel.RecomputeSelective && w.Mode == costmodel.Train:
		return refuse("is not on the list of kernels whose outputs selective recompute keeps")
	}
	for i := range g.Layers {
		op, ok := g.Layers[i].Op.(modelgraph.Attention)
		switch {
		case !ok:
		case op.Eager:
			return &costmodel.FieldError{Field: "attention", Msg: costmodel.Messagef("flash-attn has no place for what layer %q adds to its scores: %v is what the model has", g.Layers[i].Name, costmodel.Set("attention", "eager"))}
		case op.KVRank > 0:
			return refuse("is not modelled for the latent attention of layer %q", g.Layers[i].Name)
		case op.HeadDim > widestFlash:
			return refuse("takes heads of %d at most, and layer %q has %d", widestFlash, g.Layers[i].Name, op.HeadDim)
		}
	}
	return nil
}

// warnFlash gives the figures their band: the package's own allocations were
// read, not measured.
func (e *estimator) warnFlash(t *costmodel.Table) {
	if e.w.Attention != costmodel.FlashAttention || e.w.Mode == costmodel.Load {
		return
	}
	t.Band = max(t.Band, band)
	e.warnings = append(e.warnings, fmt.Sprintf(
		"the flash-attn package was read and not measured (PyTorch's copy of its kernels was): every peak may be %.0f%% lower or higher; padding is not counted", 100*band))
}
