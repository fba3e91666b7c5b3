package ops

// activationExtra returns how many tensors of the hidden width an activation keeps in addition to
// its output (torch.nn.functional, activations.py). A fused kernel keeps its input. relu, tanh and
// sigmoid keep nothing, and relu² keeps relu's result. GELU's approximations in Python keep each
// factor of a product.
func activationExtra(name string) int64 {
	switch name {
	case "relu", "tanh", "sigmoid", "":
		return 0
	case "gelu_fast":
		return 7
	case "gelu_new", "xielu": // XIELUActivation: its input, expm1, expm1 minus the input, and a product
		return 4
	case "quick_gelu":
		return 2
	}
	return 1
}

// activationWork returns how many tensors of the hidden width exist at once when an activation runs
// without gradients, including its input and output.
func activationWork(name string) int64 {
	switch name {
	case "":
		return 1
	case "gelu_fast", "xielu":
		return 5
	case "gelu_new":
		return 4
	case "relu2", "quick_gelu":
		return 3
	}
	return 2
}

// OneKernel reports an activation that keeps only its input and its output.
func OneKernel(activation string) bool {
	return activationExtra(activation) == 1 && activationWork(activation) == 2
}

// ActivationTensors returns how many tensors an activation keeps in addition to its output.
func ActivationTensors(activation string) int64 { return activationExtra(activation) }

// KeepsOutput reports that an activation's backward needs its output (derivatives.yaml of PyTorch:
// threshold_backward, tanh_backward). The output is then kept in any case.
func KeepsOutput(activation string) bool {
	return activation == "relu" || activation == "tanh" || activation == "sigmoid"
}

// activationTraffic returns how many tensors of the hidden width are read and written. A fused
// kernel moves two and three. Activations in Python (activations.py) run one kernel per operation.
func activationTraffic(name string) (forward, backward float64) {
	switch activationExtra(name) {
	case 4, 7: // pow, two products, tanh, three sums, the last product
		return 18, 30
	case 2: // sigmoid(1.702 x) × x
		return 7, 12
	}
	return 2, 3
}

// factors returns how many tensors of the FFN's width the activation's backward makes; act is its
// [activationExtra].
func (op mlp) factors(act int64, shape *Shape) int64 {
	switch {
	case op.Gated && op.oneKernel(shape):
		return 0
	case op.Gated:
		return 2
	case op.Activation == "xielu": // five gradients, and down's input is freed
		return 4
	case op.Activation == "relu2": // pow's, its product with 2, and the product with the gradient (FunctionsManual.cpp, pow_backward)
		return 3
	case KeepsOutput(op.Activation) && !op.InnerDropout:
		return 2 // its result still exists after the last linear layer has released it
	case act <= 1:
		return 1 // one kernel with one input
	case op.oneKernel(shape):
		return 0
	}
	return 2
}
