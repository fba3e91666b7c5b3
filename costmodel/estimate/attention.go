package estimate

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// widestFlash is the widest head of the flash-attn package's kernels
// (csrc/flash_attn/flash_api.cpp, mha_fwd).
const widestFlash = 256

// checkFlash refuses the flash-attn package if it has no kernel
// (transformers/modeling_flash_attention_utils.py), or none that is modelled.
func checkFlash(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	if workload.Attention != value.FlashAttention || workload.Mode == costmodel.Load {
		return nil
	}
	no := func(format string, args ...any) error {
		return refuse("attention", workload.Attention, "flash-attn %s: %v takes it", fmt.Sprintf(format, args...), costmodel.Set("attention", value.SDPA))
	}
	switch {
	case workload.Precision == costmodel.FP32True:
		return no("computes in 16 bits alone, not %s", workload.Precision)
	case workload.Recompute == value.RecomputeSelective && workload.Mode == costmodel.Train:
		return no("is not on the list of kernels whose outputs selective recompute keeps")
	}
	for i := range graph.Layers {
		op, ok := graph.Layers[i].Op.(modelgraph.Attention)
		switch name := graph.Layers[i].Name; {
		case !ok:
		case op.Eager && !op.SoftCap || op.ScoreBias != "": // it caps scores itself
			return refuse("attention", workload.Attention, "flash-attn has no place for what layer %q adds to its scores: %v is what the model has", name, costmodel.Set("attention", value.EagerAttention))
		case op.KVRank > 0:
			return no("is not modelled for the latent attention of layer %q", name)
		case op.HeadDim > widestFlash:
			return no("takes heads of %d at most, and layer %q has %d", widestFlash, name, op.HeadDim)
		}
	}
	return nil
}

// mixesTwo reports a model with mixers of Mamba-2.
func mixesTwo(graph *modelgraph.Graph) bool {
	return slices.ContainsFunc(graph.Layers, func(layer modelgraph.Layer) bool {
		mixer, ok := layer.Op.(modelgraph.StateSpace)
		return ok && (ops.MambaTwo(mixer) || mixer.Delta)
	})
}

// checkKernels refuses a source of kernels if the model has none to choose.
func checkKernels(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	if workload.Kernels == "" || mixesTwo(graph) {
		return nil
	}
	for i := range graph.Layers {
		if layer := &graph.Layers[i]; len(layer.Params) > 0 && layer.Op == (modelgraph.Opaque{}) && layer.Declared == nil {
			return refuse("kernels", workload.Kernels, "it changes activations, and the operation of layer %q is not known, so these are not counted: leave it out", layer.Name)
		}
	}
	return refuse("kernels", workload.Kernels, "it chooses what runs the mixers of Mamba-2 and gated delta rules, which this model has not: leave it out")
}

// mixers names the kernels of Mamba-2 or of the gated delta rule that are counted.
func mixers(_ *costmodel.Table, model *layers.Model) []costmodel.Message {
	if !mixesTwo(model.Graph) || model.Workload.Mode == costmodel.Load {
		return nil
	}
	kind, packages := "mixers of Mamba-2", "mamba-ssm and causal-conv1d"
	for i := range model.Layers {
		if mixer, ok := model.Layers[i].Op.(modelgraph.StateSpace); ok && mixer.Delta {
			kind, packages = "gated delta rules", "flash-linear-attention"
		}
	}
	run, other := "Transformers' own code, as without packages; with "+packages+" they take far less", value.PackageKernels
	if model.Workload.Kernels == other {
		run, other = packages+"; without it they take many times as much", value.TorchKernels
	}
	return []costmodel.Message{costmodel.Messagef("%s run by %s (%v)", kind, run, costmodel.Set("kernels", other))}
}
