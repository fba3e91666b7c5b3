package recipetest

import (
	"math"

	"github.com/devmap-dev/devmap/modelgraph"
)

// factor returns the factor of a norm for element j.
func (run *kernelRun) factor(j int64) float64 {
	weight := *run.operand("weight").At(0, j)
	if run.dims["style"] == string(modelgraph.GemmaRMSNorm) {
		return 1 + weight
	}
	return weight
}

// moments returns a row's mean, for LayerNorm, and 1/σ. It reads the kept ones, or computes and
// keeps them.
func (run *kernelRun) moments(i int64) (mean, rstd float64) {
	x, columns := run.operand("x"), run.size("columns")
	if run.Kernel.Name != "norm" {
		if run.given("mean") {
			mean = *run.operand("mean").At(i, 0)
		}
		return mean, *run.operand("rstd").At(i, 0)
	}
	layer := run.dims["style"] == string(modelgraph.LayerNorm)
	sum, squares := 0., 0.
	for j := range columns {
		sum += *x.At(i, j) / float64(columns)
	}
	if layer {
		mean = sum
	}
	for j := range columns {
		squares += (*x.At(i, j) - mean) * (*x.At(i, j) - mean) / float64(columns)
	}
	rstd = 1 / math.Sqrt(squares+run.number("epsilon"))
	if run.given("rstd") {
		*run.operand("rstd").At(i, 0) = rstd
	}
	if run.given("mean") {
		*run.operand("mean").At(i, 0) = mean
	}
	return mean, rstd
}

// normKernel without y only keeps the moments of rows.
func normKernel(run *kernelRun) {
	x := run.operand("x")
	for i := range run.size("rows") {
		mean, rstd := run.moments(i)
		if !run.given("y") {
			continue
		}
		y := run.operand("y")
		for j := range run.size("columns") {
			value := (*x.At(i, j) - mean) * rstd * run.factor(j)
			if run.given("bias") {
				value += *run.operand("bias").At(0, j)
			}
			if run.given("add") {
				value += *run.operand("add").At(i, j)
			}
			*y.At(i, j) = value
		}
	}
}

func normBackward(run *kernelRun) {
	x, dy, dx, sums := run.operand("x"), run.operand("dy"), run.operand("dx"), run.operand("sums")
	columns := run.size("columns")
	sums.each(func(_, _ int64, at *float64) { *at = 0 })
	if run.given("biases") {
		run.operand("biases").each(func(_, _ int64, at *float64) { *at = 0 })
	}
	for i := range run.size("rows") {
		mean, rstd := run.moments(i)
		sum, product := 0., 0. // of the gradient of the normed row, and with the row
		for j := range columns {
			normed, gradient := (*x.At(i, j)-mean)*rstd, *dy.At(i, j)
			*sums.At(i%sums.Rows, j) += gradient * normed
			if run.given("biases") {
				*run.operand("biases").At(i%sums.Rows, j) += gradient
			}
			sum += gradient * run.factor(j) / float64(columns)
			product += gradient * run.factor(j) * normed / float64(columns)
		}
		if run.dims["style"] != string(modelgraph.LayerNorm) {
			sum = 0
		}
		for j := range columns {
			normed := (*x.At(i, j) - mean) * rstd
			value := rstd * (*dy.At(i, j)*run.factor(j) - sum - normed*product)
			if run.given("add") {
				value += *run.operand("add").At(i, j)
			}
			*dx.At(i, j) = value
		}
	}
}
