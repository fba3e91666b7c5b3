package kernel

// activate is y = f(x).
func activate(call *Call) error {
	function, err := call.activation()
	if err != nil {
		return err
	}
	return call.byRow([]string{"x"}, []string{"y"}, func(from, to [][]float32) {
		for j, x := range from[0] {
			to[0][j] = float32(function.value(float64(x)))
		}
	})
}

// activateBackward is dx = dy·f'(x).
func activateBackward(call *Call) error {
	function, err := call.activation()
	if err != nil {
		return err
	}
	return call.byRow([]string{"x", "dy"}, []string{"dx"}, func(from, to [][]float32) {
		for j, x := range from[0] {
			to[0][j] = float32(float64(from[1][j]) * function.slope(float64(x)))
		}
	})
}

// gate is y = f(gate)·up. f(gate) is rounded as a tensor of its own, as in LlamaMLP.
func gate(call *Call) error {
	function, err := call.activation()
	if err != nil {
		return err
	}
	y := call.matrix("y")
	return call.byRow([]string{"gate", "up"}, []string{"y"}, func(from, to [][]float32) {
		for j, x := range from[0] {
			to[0][j] = float32(function.value(float64(x)))
		}
		y.round(to[0])
		for j, up := range from[1] {
			to[0][j] *= up
		}
	})
}

// gateBackward computes the gradients of gate and up, each rounded once.
func gateBackward(call *Call) error {
	function, err := call.activation()
	if err != nil {
		return err
	}
	return call.byRow([]string{"gate", "up", "dy"}, []string{"dgate", "dup"}, func(from, to [][]float32) {
		for j, x := range from[0] {
			dy := float64(from[2][j])
			to[0][j] = float32(dy * float64(from[1][j]) * function.slope(float64(x)))
			to[1][j] = float32(dy * function.value(float64(x)))
		}
	})
}
