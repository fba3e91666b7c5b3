package kernel

import (
	"fmt"
	"math"
)

// gradient is a gradient as the optimizer reads it. For a tied weight it is the sum of the
// gradients of all uses, in module order.
type gradient []Matrix

func (call *Call) gradient(role string) (gradient, error) {
	if _, err := call.need(role); err != nil {
		return nil, err
	}
	for i := range call.Kernel.Operands {
		if call.Kernel.Operands[i].Role == role && i < len(call.Uses) && call.Uses[i] != nil {
			return call.Uses[i], nil
		}
	}
	return gradient{*call.matrix(role)}, nil
}

// row returns a row of the sum, in fp32.
func (uses gradient) row(i int64, sum, buffer []float32) []float32 {
	if len(uses) == 1 {
		return uses[0].row(i, sum)
	}
	uses[0].Load(i, 0, sum)
	for j := range uses[1:] {
		addTo(sum, uses[1+j].row(i, buffer))
	}
	return sum
}

// square computes the squared norm of a gradient. Row i is added to part i modulo the number of
// parts. Each part is added up in order, then the parts are.
func square(call *Call) error {
	uses, err := call.gradient("x")
	if err != nil {
		return err
	}
	matrices, err := call.need("y")
	if err != nil {
		return err
	}
	rows, columns := uses[0].Rows, uses[0].Columns
	parts := make([]float64, min(rows, 128))
	count := int64(len(parts))
	inRows(count, columns*(rows/count+1), func(first, end int64) {
		values, buffer := make([]float32, columns), make([]float32, columns)
		for part := first; part < end; part++ {
			for i := part; i < rows; i += count {
				for _, value := range uses.row(i, values, buffer) {
					parts[part] += float64(value) * float64(value)
				}
			}
		}
	})
	total := 0.
	for _, part := range parts {
		total += part
	}
	matrices[0].Store(0, 0, []float32{float32(total)})
	return nil
}

// clipped returns the factor of gradients (torch.nn.utils.clip_grad_norm_).
func (call *Call) clipped() (float32, error) {
	if call.Optimizer.Clip == 0 {
		return 1, nil
	}
	matrices, err := call.need("total")
	if err != nil {
		return 0, err
	}
	norm := float32(math.Sqrt(float64(matrices[0].value(0))))
	return min(1, float32(call.Optimizer.Clip)/(norm+1e-6)), nil
}

// updater changes values by their gradients and the optimizer's states.
type updater func(values, gradients []float32, states [][]float32)

// update runs over the rows of a parameter. If it has a master in fp32, that is updated, and the
// weight is its rounded copy.
func (call *Call) update(step updater, states ...string) error {
	if call.Optimizer == nil {
		return fmt.Errorf("%s has no optimizer's settings", call.Kernel.Name)
	}
	uses, err := call.gradient("gradient")
	if err != nil {
		return err
	}
	changed, err := call.need(append([]string{"weight"}, states...)...)
	if err != nil {
		return err
	}
	scale, err := call.clipped()
	if err != nil {
		return err
	}
	weight := changed[0]
	if master := call.matrix("master"); master != nil {
		changed[0] = master
	}
	inRows(weight.Rows, weight.Columns, func(first, end int64) {
		run := updateOf(changed, weight.Columns)
		for i := first; i < end; i++ {
			run.load(changed, i)
			for j, value := range uses.row(i, run.sum, run.buffer) {
				run.gradients[j] = value * scale
			}
			step(run.values[0], run.gradients, run.values[1:])
			run.store(changed, i)
			weight.Store(i, 0, run.values[0])
		}
	})
	return nil
}

// updateRow is the row that is updated.
type updateRow struct {
	values                 [][]float32 // the parameter's, and its states'
	gradients, sum, buffer []float32
}

func updateOf(changed []*Matrix, columns int64) *updateRow {
	run := &updateRow{values: make([][]float32, len(changed)), gradients: make([]float32, columns), sum: make([]float32, columns), buffer: make([]float32, columns)}
	for i := range changed {
		run.values[i] = make([]float32, columns)
	}
	return run
}

func (run *updateRow) load(changed []*Matrix, row int64) {
	for i, matrix := range changed {
		matrix.Load(row, 0, run.values[i])
	}
}

func (run *updateRow) store(changed []*Matrix, row int64) {
	for i, matrix := range changed {
		matrix.Store(row, 0, run.values[i])
	}
}
