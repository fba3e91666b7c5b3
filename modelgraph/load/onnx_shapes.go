package load

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// infer gives values without a shape theirs, as far as the operations that models are
// made of say it (ONNX's Operators.md). The old exporter of torch writes none.
func (graph *onnxGraph) infer() {
	for _, weight := range graph.weights {
		graph.values[weight.name] = weight
	}
	for _, node := range graph.nodes {
		if node.constant != nil && node.kind == "Constant" && len(node.outputs) > 0 {
			graph.values[node.outputs[0]] = node.constant
		}
		if len(node.outputs) == 0 || graph.settled(node.outputs[0]) {
			continue
		}
		inputs := make([]*onnxTensor, 0, len(node.inputs))
		for _, name := range node.inputs {
			inputs = append(inputs, graph.values[name])
		}
		if len(inputs) == 0 || inputs[0] == nil || !inputs[0].known || len(inputs[0].symbols) > 0 {
			continue
		}
		if shape := shapeOf(node, inputs); shape != nil {
			of := &onnxTensor{name: node.outputs[0], shape: shape, dtype: typeOf(node, inputs), known: true}
			graph.values[node.outputs[0]] = of
		}
	}
}

// typeOf is the type of a node's first result.
func typeOf(node *onnxNode, inputs []*onnxTensor) modelgraph.DType {
	dtype := inputs[0].dtype
	switch name := onnxTypes[uint64(max(0, node.whole("to", 0)))]; {
	case node.kind == "Where" && len(inputs) > 1 && inputs[1] != nil:
		dtype = inputs[1].dtype
	case node.kind == "Cast" && name != "":
		dtype, _ = modelgraph.ParseDType(name)
	case slices.Contains([]string{"Equal", "Greater", "Less"}, node.kind):
		dtype, _ = modelgraph.ParseDType("BOOL")
	}
	return dtype
}

func (graph *onnxGraph) settled(name string) bool {
	value := graph.values[name]
	return value != nil && value.known && len(value.symbols) == 0
}

// onnxAlike give a result of their first input's shape, onnxBroadcast one that all inputs widen to.
var (
	onnxAlike     = []string{"Relu", "Sigmoid", "Tanh", "Softmax", "LogSoftmax", "BatchNormalization", "InstanceNormalization", "LayerNormalization", "GroupNormalization", "LeakyRelu", "Elu", "Gelu", "Erf", "Exp", "Log", "Sqrt", "Neg", "Abs", "Clip", "Cast", "Identity", "Dropout", "HardSwish", "HardSigmoid", "Selu", "Softplus", "Softsign", "PRelu", "LRN", "Sin", "Cos", "Reciprocal", "Floor", "Ceil", "Round", "Sign", "Not", "Silu", "Swish", "Mish", "CumSum"}
	onnxBroadcast = []string{"Add", "Sub", "Mul", "Div", "Pow", "Where", "Max", "Min", "Sum", "And", "Or", "Equal", "Greater", "Less"}
)

// shapeOf is the shape of a node's first result; nil if it is not known.
func shapeOf(node *onnxNode, inputs []*onnxTensor) []int64 {
	first, second := inputs[0].shape, []int64(nil)
	if len(inputs) > 1 && inputs[1] != nil && inputs[1].known && len(inputs[1].symbols) == 0 {
		second = inputs[1].shape
	}
	switch {
	case slices.Contains(onnxAlike, node.kind):
		return first
	case slices.Contains(onnxBroadcast, node.kind):
		return broadcast(inputs)
	}
	switch node.kind {
	case "MatMul":
		return product(first, second)
	case "Gemm":
		return gemm(node, first, second)
	case "Conv", "ConvTranspose", "MaxPool", "AveragePool":
		return window(node, first, second)
	case "Gather":
		return gathered(first, second, node.whole("axis", 0))
	case "Reshape":
		if len(inputs) > 1 && inputs[1] != nil {
			return reshaped(first, inputs[1].values)
		}
		return nil
	}
	return shapeOfOne(node, first, inputs)
}

// shapeOfOne is the shape of an operation that turns its first input.
func shapeOfOne(node *onnxNode, first []int64, inputs []*onnxTensor) []int64 {
	switch node.kind {
	case "GlobalAveragePool", "GlobalMaxPool":
		return ones(first)
	case "Flatten":
		return flatten(first, node.whole("axis", 1))
	case "Transpose":
		return transposed(first, node.ints["perm"])
	case "Concat":
		return joined(inputs, node.whole("axis", 0))
	}
	return nil
}

// whole is a number among a node's attributes.
func (node *onnxNode) whole(name string, otherwise int64) int64 {
	if numbers := node.ints[name]; len(numbers) == 1 {
		return numbers[0]
	}
	return otherwise
}

func broadcast(inputs []*onnxTensor) []int64 {
	out := []int64{}
	for _, input := range inputs {
		if input == nil || !input.known || len(input.symbols) > 0 {
			return nil
		}
		for len(out) < len(input.shape) {
			out = slices.Insert(out, 0, 1)
		}
		for i := range input.shape {
			at := len(out) - len(input.shape) + i
			if out[at] == 1 {
				out[at] = input.shape[i]
			}
		}
	}
	return out
}

func product(first, second []int64) []int64 {
	if len(first) < 2 || len(second) < 2 {
		return nil
	}
	lead := broadcast([]*onnxTensor{{shape: first[:len(first)-2], known: true}, {shape: second[:len(second)-2], known: true}})
	return append(lead, first[len(first)-2], second[len(second)-1])
}

func gemm(node *onnxNode, first, second []int64) []int64 {
	if len(first) != 2 || len(second) != 2 {
		return nil
	}
	return []int64{first[node.whole("transA", 0)&1], second[1-node.whole("transB", 0)&1]}
}

// window is what a convolution or a pool makes: floor((in + pads - dilation·(kernel-1) - 1) / stride) + 1.
func window(node *onnxNode, first, second []int64) []int64 {
	kernel := node.ints["kernel_shape"]
	spatial := len(first) - 2
	if len(kernel) == 0 && len(second) > 2 {
		kernel = second[2:]
	}
	if spatial < 1 || len(kernel) != spatial {
		return nil
	}
	out := slices.Clone(first)
	if node.kind == "Conv" && len(second) > 0 {
		out[1] = second[0]
	} else if node.kind == "ConvTranspose" && len(second) > 1 {
		out[1] = second[1] * node.whole("group", 1)
	}
	at := func(name string, i int, otherwise int64) int64 {
		if numbers := node.ints[name]; i < len(numbers) {
			return numbers[i]
		}
		return otherwise
	}
	for i := range spatial {
		stride := max(1, at("strides", i, 1))
		pads := at("pads", i, 0) + at("pads", i+spatial, 0)
		reach := at("dilations", i, 1)*(kernel[i]-1) + 1
		side := (first[i+2]+pads-reach)/stride + 1
		if node.whole("ceil_mode", 0) == 1 {
			side = (first[i+2]+pads-reach+stride-1)/stride + 1
		}
		if node.kind == "ConvTranspose" {
			side = stride*(first[i+2]-1) + at("output_padding", i, 0) + reach - pads
		}
		if side < 0 || side > maxResults {
			return nil
		}
		out[i+2] = side
	}
	return out
}

func ones(first []int64) []int64 {
	out := slices.Clone(first)
	for i := 2; i < len(out); i++ {
		out[i] = 1
	}
	return out
}

func flatten(first []int64, axis int64) []int64 {
	if axis < 0 {
		axis += int64(len(first))
	}
	if axis < 0 || axis > int64(len(first)) {
		return nil
	}
	return []int64{times(first[:axis]), times(first[axis:])}
}

// times multiplies sides, and is -1 beyond what a model has: no tensor is so large.
func times(sides []int64) int64 {
	total := int64(1)
	for _, side := range sides {
		if side != 0 && total > maxResults/max(1, side) || side < 0 {
			return -1
		}
		total *= side
	}
	return total
}

func transposed(first, order []int64) []int64 {
	out := slices.Clone(first)
	if len(order) == 0 {
		slices.Reverse(out)
		return out
	}
	if len(order) != len(first) {
		return nil
	}
	for i, from := range order {
		if from < 0 || from >= int64(len(first)) {
			return nil
		}
		out[i] = first[from]
	}
	return out
}

func joined(inputs []*onnxTensor, axis int64) []int64 {
	out := slices.Clone(inputs[0].shape)
	if axis < 0 {
		axis += int64(len(out))
	}
	if axis < 0 || axis >= int64(len(out)) {
		return nil
	}
	for _, input := range inputs[1:] {
		if input == nil || !input.known || len(input.symbols) > 0 || len(input.shape) != len(out) {
			return nil
		}
		if out[axis] += input.shape[axis]; out[axis] > maxResults {
			return nil
		}
	}
	return out
}

func gathered(first, second []int64, axis int64) []int64 {
	if second == nil || axis < 0 || axis >= int64(len(first)) || len(first)+len(second) > maxTensorDims {
		return nil
	}
	return slices.Concat(first[:axis], second, first[axis+1:])
}

// reshaped is a new shape: 0 keeps a side, -1 is what is left.
func reshaped(first, wanted []int64) []int64 {
	if len(wanted) == 0 {
		return nil
	}
	out, open := slices.Clone(wanted), -1
	for i, side := range out {
		switch {
		case side == 0 && i < len(first):
			out[i] = first[i]
		case side < 0 && open < 0:
			open, out[i] = i, 1
		case side < 0:
			return nil
		}
	}
	if open >= 0 {
		all, rest := times(first), times(out)
		if all < 0 || rest <= 0 || all%rest != 0 {
			return nil
		}
		out[open] = all / rest
	}
	return out
}
