package ops

// activationExtra is how many tensors of the hidden width an activation keeps
// in addition to its output (torch.nn.functional, activations.py). A fused kernel
// keeps its input, relu, tanh and sigmoid nothing, and relu² relu's result. GELU's approximations in
// Python keep each factor of a product.
func activationExtra(name string) int64 {
	switch name {
	case "relu", "tanh", "sigmoid", "":
		return 0
	case "gelu_fast":
		return 7
	case "gelu_new", "xielu": // XIELUActivation: its input, expm1, that less the input, and a product
		return 4
	case "quick_gelu":
		return 2
	}
	return 1
}

// activationWork is how many tensors of the hidden width exist at once when an
// activation runs without gradients, its input and its output with them.
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

// OneKernel reports an activation that keeps its input and its output alone.
func OneKernel(activation string) bool {
	return activationExtra(activation) == 1 && activationWork(activation) == 2
}

// ActivationTensors is how many tensors an activation keeps in addition to its output.
func ActivationTensors(activation string) int64 { return activationExtra(activation) }

// KeepsOutput reports that an activation's backward needs its output
// (derivatives.yaml of PyTorch: threshold_backward, tanh_backward), so that it
// is kept whoever reads it.
func KeepsOutput(activation string) bool {
	return activation == "relu" || activation == "tanh" || activation == "sigmoid"
}

// activationTraffic is tensors of the hidden width read and written: a fused
// kernel's two and three; those written in Python (activations.py) a kernel
// an operation.
func activationTraffic(name string) (forward, backward float64) {
	switch activationExtra(name) {
	case 4, 7: // pow, two products, tanh, three sums, the last product
		return 18, 30
	case 2: // sigmoid(1.702 x) × x
		return 7, 12
	}
	return 2, 3
}

// factors are the tensors of the FFN's width that the activation's backward makes;
// act is [activationExtra] of it.
func (op mlp) factors(act int64, shape *Shape) int64 {
	switch {
	case op.Gated && op.oneKernel(shape):
		return 0
	case op.Gated:
		return 2
	case op.Activation == "xielu": // five of its gradients, and down's input is gone
		return 4
	case op.Activation == "relu2": // pow's, its product with 2, and with the gradient (FunctionsManual.cpp, pow_backward)
		return 3
	case KeepsOutput(op.Activation) && !op.InnerDropout:
		return 2 // its result is there, though the last linear layer has let go of it
	case act <= 1:
		return 1 // one kernel with one input
	case op.oneKernel(shape):
		return 0
	}
	return 2
}
