package estimate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// leastCapability is the compute capability below which Transformers 5.17 converts a checkpoint's
// quantised weights to bf16 as it loads them. It asks the first GPU
// (quantizers/quantizer_finegrained_fp8.py and quantizer_mxfp4.py, validate_environment).
var leastCapability = map[string]float64{"fp8": 8.9, "mxfp4": 7.5}

// On returns the workload on these GPUs. It sets how many work together (one process owns all under
// a device map), and whether they have arithmetic for the model's stored weights.
func On(graph *modelgraph.Graph, workload costmodel.Workload, topology *costmodel.Topology) costmodel.Workload {
	workload.World = 0
	if traits := workload.Strategy.Traits(); traits.Staged || traits.Replicated {
		workload.World = int64(len(topology.Devices))
	}
	workload.OneGPU = workload.Strategy == costmodel.DeviceMap && len(topology.Devices) == 1
	workload.Dequantized = dequantizes(graph, topology)
	return workload
}

// plainBase reports a config without files that starts from bf16 weights instead of its quantised
// ones: in training, and under another quantised base (dequantize=True in Transformers).
func plainBase(graph *modelgraph.Graph, workload *costmodel.Workload) bool {
	if _, known := leastCapability[graph.Quantized]; !known || len(graph.Config) == 0 || workload.Mode != costmodel.Train && workload.Quantize == "" {
		return false
	}
	for i := range graph.Layers {
		for j := range graph.Layers[i].Params {
			if len(graph.Layers[i].Params[j].Parts) > 0 {
				return false
			}
		}
	}
	return true
}

// dequantizes reports that Transformers converts graph's stored weights to bf16 on these devices. A
// device with unknown capability keeps them.
func dequantizes(graph *modelgraph.Graph, topology *costmodel.Topology) bool {
	least, ok := leastCapability[graph.Quantized]
	if !ok || len(topology.Devices) == 0 {
		return false
	}
	if asksPlain(graph) {
		return true
	}
	have, err := strconv.ParseFloat(topology.Devices[0].ComputeCapability, 64)
	return err == nil && have < least
}

// asksPlain reports a config with dequantize true in its quantization_config.
func asksPlain(graph *modelgraph.Graph) bool {
	var config struct {
		Section struct {
			Dequantize bool `json:"dequantize"`
		} `json:"quantization_config"`
	}
	return json.Unmarshal(graph.Config, &config) == nil && config.Section.Dequantize
}

// asLoaded is graph as the workload has it on its devices.
func asLoaded(graph *modelgraph.Graph, workload *costmodel.Workload) (*modelgraph.Graph, error) {
	if !workload.Dequantized {
		return graph, nil
	}
	return dequantised(graph)
}

// dequantised is graph as it is loaded then: each weight in bf16, without scales (Fp8Dequantize;
// integrations/mxfp4.py, convert_moe_packed_tensors). Tensors' places and the digest stay the files'.
func dequantised(graph *modelgraph.Graph) (*modelgraph.Graph, error) {
	out := *graph
	out.Layers = slices.Clone(graph.Layers)
	for i := range out.Layers {
		layer := &out.Layers[i]
		var params []modelgraph.Tensor
		for _, tensor := range layer.Params {
			plain, unchanged := tensor, true
			var err error
			switch {
			case strings.HasSuffix(tensor.Name, "_scale_inv") || strings.HasSuffix(tensor.Name, "_scales"):
				unchanged = false
			case slices.Contains([]string{"F8_E4M3", "F8_E5M2"}, tensor.DType.String()):
				plain, err = modelgraph.NewTensor(tensor.Name, modelgraph.BF16, tensor.Shape...)
			case strings.HasSuffix(tensor.Name, "_blocks") && tensor.DType.String() == "U8": // two values a byte
				plain, err = modelgraph.NewTensor(strings.TrimSuffix(tensor.Name, "_blocks"), modelgraph.BF16, append(slices.Clone(tensor.Shape), 2)...)
			}
			if err != nil {
				return nil, fmt.Errorf("layer %q: %w", layer.Name, err)
			}
			if unchanged {
				plain.Owner, plain.Parts = tensor.Owner, tensor.Parts
				params = append(params, plain)
			}
		}
		layer.Params = params
	}
	return &out, nil
}

// countLoading sets each unit's temporary memory of converting stored weights: its largest one's.
// Transformers converts on GPUs under a device map, else in host memory (core_model_loading.py,
// convert_and_load_state_dict_in_model).
func countLoading(table *costmodel.Table, stored *modelgraph.Graph) {
	if !table.Workload.Dequantized || table.Workload.Strategy != costmodel.DeviceMap || table.Workload.Runtime != value.Accelerate {
		return
	}
	for i := range stored.Units {
		for at := stored.Units[i].First; at < stored.Units[i].End; at++ {
			layer := &stored.Layers[at]
			for j := range layer.Params {
				table.Units[i].Loading = max(table.Units[i].Loading, conversion(&layer.Params[j]))
			}
		}
	}
}

// conversion is the peak of converting one stored weight to bf16, above the result (Transformers
// 5.17).
func conversion(tensor *modelgraph.Tensor) int64 {
	switch name := tensor.DType.String(); {
	case name == "U8" && strings.HasSuffix(tensor.Name, "_blocks"):
		// A row is 16 bytes and its scale, which becomes int32 (integrations/mxfp4.py,
		// _convert_moe_packed_tensors). For 2^25 rows at once, lut[idx] takes 16 indices a row as
		// int32 and int64, and 16 values. The transposed result's copy is as large as the result.
		const most = 32768 * 1024
		rows := tensor.Numel / 16
		return 21*rows + max(224*min(rows, most), 64*rows)
	case name == "F8_E4M3" && len(tensor.Shape) == 3:
		// core_model_loading.py, Concatenate and MergeModulelist: single experts' matrices and the
		// joined one.
		return max(2*tensor.Numel, tensor.Numel+9*tensor.Numel/tensor.Shape[0])
	case name == "F8_E4M3":
		// integrations/finegrained_fp8.py, Fp8Dequantize._dequantize_one: the stored
		// weight, it in fp32, and the fp32 product with its scales.
		return 9 * tensor.Numel
	}
	return 0
}

// warnStored says what becomes of stored quantised weights.
func warnStored(table *costmodel.Table, stored, loaded *modelgraph.Graph) {
	switch method := stored.Quantized; {
	case table.Workload.Dequantized && plainBase(stored, &table.Workload):
		table.Warnings = append(table.Warnings, costmodel.Messagef("the weights are stored as %s and counted as bf16, %v in place of %v: load them with dequantize=True in the quantization config",
			method, costmodel.Bytes(loaded.ParamBytes()), costmodel.Bytes(stored.ParamBytes())))
		warnLoading(table, method, loaded)
	case table.Workload.Dequantized && asksPlain(stored):
		table.Warnings = append(table.Warnings, costmodel.Messagef("quantization_config has dequantize true: Transformers turns %s weights into bf16 as it loads them: %v in place of the %v that are stored",
			method, costmodel.Bytes(loaded.ParamBytes()), costmodel.Bytes(stored.ParamBytes())))
	case table.Workload.Dequantized:
		table.Warnings = append(table.Warnings, costmodel.Messagef("on these GPUs, below compute capability %v, Transformers turns %s weights into bf16 as it loads them: %v in place of the %v that are stored",
			leastCapability[method], method, costmodel.Bytes(loaded.ParamBytes()), costmodel.Bytes(stored.ParamBytes())))
	case method == "mxfp4":
		if plain, err := dequantised(stored); err == nil {
			table.Warnings = append(table.Warnings, costmodel.Messagef("mxfp4 weights stay packed where Triton 3.4 or later and the kernels package are installed; without them Transformers turns them into bf16: %v in place of %v",
				costmodel.Bytes(plain.ParamBytes()), costmodel.Bytes(stored.ParamBytes())))
		}
	}
}

// warnLoading warns about loading if every process has the whole model. Transformers moves mxfp4
// blocks to the process's GPU and converts them to bf16 there, before ZeRO or FSDP shards them
// (integrations/mxfp4.py, convert_moe_packed_tensors). Public reports ran out of memory there, not
// in the step: huggingface/transformers#43696, hiyouga/LlamaFactory#8872.
func warnLoading(table *costmodel.Table, method string, loaded *modelgraph.Graph) {
	if method == "mxfp4" && table.Workload.Strategy.Traits().Replicated {
		table.Warnings = append(table.Warnings, costmodel.Messagef("loading: before anything is sharded, every process turns the mxfp4 weights into bf16 on its own GPU, up to %v: a checkpoint stored in bf16 avoids that",
			costmodel.Bytes(loaded.ParamBytes())))
	}
}

// checkStored refuses to train weights without gradients, as Trainer does (trainer_utils.py,
// validate_quantization_for_training); those converted to bf16 train as others do.
func checkStored(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	if graph.Quantized != "" && workload.Quantize != "" && !workload.Dequantized && workload.Mode != costmodel.Train {
		return refuse("quantize", workload.Quantize, "the weights are stored as %s, which no loader quantises again: leave %v out",
			graph.Quantized, costmodel.Setting{Field: "quantize"})
	}
	if workload.Mode != costmodel.Train || graph.Quantized == "" || workload.Dequantized {
		return nil
	}
	what := "take no gradients, and Trainer refuses to train them"
	if workload.LoRARank > 0 {
		what = "are packed, so that adapters on them cannot be counted from the files"
	}
	return refuse("mode", workload.Mode, "the weights are stored as %s; these %s: plan the model that is not quantised (its config.json without quantization_config) with adapters on a base that is (%v %v %v) or in full",
		graph.Quantized, what, costmodel.Set("quantize", value.NF4), usualRank, allLinear)
}
