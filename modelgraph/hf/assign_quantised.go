package hf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// quantisedSuffixes end the names of tensors that quantised formats store
// beside or in place of a weight.
var quantisedSuffixes = []string{
	".qweight", ".qzeros", ".scales", ".g_idx", // GPTQ, AWQ
	"_scale_inv", "_scale", "_scale_2", // FP8, compressed-tensors, NVFP4
	".weight_packed", ".weight_shape", ".weight_zero_point", ".weight_g_idx", ".weight_global_scale",
	"_blocks", "_scales", // MXFP4
	".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map", // bitsandbytes
	".SCB", ".weight_format",
}

func quantisedName(name string) bool {
	return strings.Contains(name, ".quant_state.") ||
		slices.ContainsFunc(quantisedSuffixes, func(s string) bool { return strings.HasSuffix(name, s) })
}

// packs reports whether quantised formats put several weights into an element
// of the type, so that the stored shape is not the weight's.
func packs(d modelgraph.DType) bool {
	return slices.Contains([]modelgraph.DType{modelgraph.U8, modelgraph.I8, modelgraph.I32, modelgraph.U32, modelgraph.I64}, d)
}

// placeExtra takes a tensor that fills nothing as part of the deepest module
// above it, if it belongs to quantised storage: its name says so, or the
// config does and the module has weights of its own.
func (a *assignment) placeExtra(s slot, t *safetensors.Tensor) bool {
	module, layer, ok := a.moduleAbove(s.name)
	if !ok || !quantisedName(s.name) && (!a.configured || parent(s.name) != module) {
		return false
	}
	a.quantised[module] = true
	f := a.extras[s.name]
	if f == nil {
		f = &filling{name: s.name, module: module, layer: layer}
		a.extras[s.name] = f
		a.extraOrder = append(a.extraOrder, f)
	}
	f.pieces = append(f.pieces, piece{s, t})
	return true
}

// moduleAbove is the deepest module that holds parameters and lies above name.
func (a *assignment) moduleAbove(name string) (module string, layer int, ok bool) {
	for p := parent(name); p != ""; p = parent(p) {
		if i, ok := a.modules[p]; ok {
			return p, i, strings.HasPrefix(name, a.g.Layers[i].Name+".")
		}
	}
	return "", 0, false
}

// attach adds the extras to their layers and drops the parameters that
// quantised storage replaces.
func (a *assignment) attach() {
	if len(a.quantised) == 0 {
		return
	}
	replaced := make(map[*modelgraph.Tensor]bool)
	for _, f := range a.order {
		if len(f.pieces) == 0 && !f.shared && a.quantised[f.module] {
			replaced[f.tensor] = true
		}
	}
	for i := range a.g.Layers {
		l := &a.g.Layers[i]
		kept := make([]modelgraph.Tensor, 0, len(l.Params))
		for j := range l.Params {
			if !replaced[&l.Params[j]] {
				kept = append(kept, l.Params[j])
			}
		}
		l.Params = kept
	}
	for _, f := range a.extraOrder {
		l := &a.g.Layers[f.layer]
		l.Params = append(l.Params, a.extraTensor(l.Name, f))
	}
}

// nameMethod notes by what method the stored weights are quantised, where they
// are, and that packed ones are counted by what is stored: the framework
// registers those tensors, not the weights.
func (a *assignment) nameMethod(g *modelgraph.Graph, weights int64) {
	if g.Quantized = quantMethod(a.config, g); g.Quantized == "" {
		return
	}
	if n := g.ParamCount(); n != weights {
		g.Warnings = append(g.Warnings, fmt.Sprintf("parameters are counted as the elements that are stored: %d, of %s tensors and their tables, stand for %d weights", n, g.Quantized, weights))
	}
}

// quantMethod is the config's name of the method, where weights are stored in
// types that no framework trains; "packed" where it names none.
func quantMethod(c *config, g *modelgraph.Graph) string {
	packed := false
	for i := range g.Layers {
		packed = packed || slices.ContainsFunc(g.Layers[i].Params, func(t modelgraph.Tensor) bool { return !t.DType.Float() })
	}
	if !packed {
		return ""
	}
	for _, key := range []string{"quantization_config", "compression_config"} {
		if q := c.sub(key); q.has("quant_method") {
			return q.str("", "quant_method")
		}
	}
	return "packed"
}

func (a *assignment) extraTensor(layer string, f *filling) modelgraph.Tensor {
	a.choose(f)
	return modelgraph.Tensor{
		Name:  strings.TrimPrefix(f.name, layer+"."),
		Shape: composed(f.pieces), DType: a.storedType(f), Parts: a.parts(f),
	}
}
