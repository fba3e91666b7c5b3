package estimate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// leastCapability is the compute capability below which Transformers 5.17
// turns a checkpoint's quantised weights into bf16 as it loads them
// (quantizers/quantizer_finegrained_fp8.py and quantizer_mxfp4.py,
// validate_environment, which ask the first GPU).
var leastCapability = map[string]float64{"fp8": 8.9, "mxfp4": 7.5}

// Dequantizes reports whether Transformers makes bf16 of g's stored weights on
// these devices. A device whose capability is not known keeps them.
func Dequantizes(g *modelgraph.Graph, t *costmodel.Topology) bool {
	least, ok := leastCapability[g.Quantized]
	if !ok || len(t.Devices) == 0 {
		return false
	}
	have, err := strconv.ParseFloat(t.Devices[0].ComputeCapability, 64)
	return err == nil && have < least
}

// dequantised is g as it is loaded then: a weight an element in bf16, no
// scales (Fp8Dequantize; integrations/mxfp4.py, convert_moe_packed_tensors).
// Where a tensor lies, and the model's digest, stay the files'.
func dequantised(g *modelgraph.Graph) (*modelgraph.Graph, error) {
	out := *g
	out.Layers = slices.Clone(g.Layers)
	for i := range out.Layers {
		l := &out.Layers[i]
		var params []modelgraph.Tensor
		for _, t := range l.Params {
			plain, kept := t, true
			var err error
			switch {
			case strings.HasSuffix(t.Name, "_scale_inv") || strings.HasSuffix(t.Name, "_scales"):
				kept = false
			case t.DType == modelgraph.F8E4M3 || t.DType == modelgraph.F8E5M2:
				plain, err = modelgraph.NewTensor(t.Name, modelgraph.BF16, t.Shape...)
			case strings.HasSuffix(t.Name, "_blocks") && t.DType == modelgraph.U8: // two values a byte
				plain, err = modelgraph.NewTensor(strings.TrimSuffix(t.Name, "_blocks"), modelgraph.BF16, append(slices.Clone(t.Shape), 2)...)
			}
			if err != nil {
				return nil, fmt.Errorf("layer %q: %w", l.Name, err)
			}
			if kept {
				plain.Owner, plain.Parts = t.Owner, t.Parts
				params = append(params, plain)
			}
		}
		l.Params = params
	}
	return &out, nil
}

// warnStored says what becomes of stored quantised weights.
func warnStored(table *costmodel.Table, stored, loaded *modelgraph.Graph) {
	switch method := stored.Quantized; {
	case table.Workload.Dequantized:
		table.Warnings = append(table.Warnings, fmt.Sprintf("on these GPUs, below compute capability %v, Transformers turns %s weights into bf16 as it loads them: %v in place of the %v that are stored",
			leastCapability[method], method, costmodel.Bytes(loaded.ParamBytes()), costmodel.Bytes(stored.ParamBytes())))
	case method == "mxfp4":
		if plain, err := dequantised(stored); err == nil {
			table.Warnings = append(table.Warnings, fmt.Sprintf("mxfp4 weights stay packed where Triton 3.4 or later and the kernels package are installed; without them Transformers turns them into bf16: %v in place of %v",
				costmodel.Bytes(plain.ParamBytes()), costmodel.Bytes(stored.ParamBytes())))
		}
	}
}

// checkStored refuses to train weights that take no gradients, as Trainer does
// (trainer_utils.py, validate_quantization_for_training); those that are made
// bf16 are weights like others.
func checkStored(g *modelgraph.Graph, w *costmodel.Workload) error {
	if w.Mode != costmodel.Train || g.Quantized == "" || w.Dequantized {
		return nil
	}
	what := "take no gradients, and Trainer refuses to train them"
	if w.LoRARank > 0 {
		what = "are packed, so that adapters on them cannot be counted from the files"
	}
	return refuse("mode", w.Mode, "the weights are stored as %s; these %s: plan the model that is not quantised, of which config.json is enough, with adapters on a base that is (%v %v %v) or in full",
		g.Quantized, what, costmodel.Set("quantize", costmodel.NF4), usualRank, allLinear)
}
