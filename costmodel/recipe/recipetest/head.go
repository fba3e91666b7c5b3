package recipetest

import (
	"math"
)

// label is what row i is to predict: the next id of its sequence; -1: nothing.
func (run *kernelRun) label(i int64) int64 {
	labels, seq := run.operand("labels"), run.size("seq")
	if i%seq == seq-1 {
		return -1
	}
	return int64(*labels.At(i/seq, i%seq+1))
}

// capped is a logit under its cap, and the slope of that.
func (run *kernelRun) capped(x float64) (value, slope float64) {
	if !run.has("cap") {
		return x, 1
	}
	tanh := math.Tanh(x / run.number("cap"))
	return run.number("cap") * tanh, 1 - tanh*tanh
}

func softmaxSums(run *kernelRun) {
	x, sums, first := run.operand("x"), run.operand("sums"), run.size("first")
	for i := range x.Rows {
		largest, sum := sums.At(i, 0), sums.At(i, 1)
		if first == 0 {
			*largest, *sum = math.Inf(-1), 0
		}
		for j := range x.Columns {
			value, _ := run.capped(*x.At(i, j))
			most := max(*largest, value)
			*sum = *sum*math.Exp(*largest-most) + math.Exp(value-most)
			*largest = most
			if first+j == run.label(i) {
				*sums.At(i, 2) = value
			}
		}
	}
}

func lossKernel(run *kernelRun) {
	sums, total, count := run.operand("sums"), 0., 0.
	for i := range sums.Rows {
		lse := *sums.At(i, 0) + math.Log(*sums.At(i, 1))
		*run.operand("lse").At(i, 0) = lse
		if run.label(i) >= 0 {
			total, count = total+lse-*sums.At(i, 2), count+1
		}
	}
	*run.operand("loss").At(0, 0) = total / count
}

func countLabels(run *kernelRun) {
	count := 0.
	for i := range run.size("sequences") * run.size("seq") {
		if run.label(i) >= 0 {
			count++
		}
	}
	*run.operand("y").At(0, 0) = count
}

func lossBackward(run *kernelRun) {
	first := run.size("first")
	run.operand("x").each(func(i, j int64, at *float64) {
		if run.label(i) < 0 {
			*at = 0
			return
		}
		value, slope := run.capped(*at)
		gradient := math.Exp(value - *run.operand("lse").At(i, 0))
		if first+j == run.label(i) {
			gradient--
		}
		*at = gradient * slope / *run.operand("counted").At(0, 0) / run.number("micro_batches")
	})
}

func softcapKernel(run *kernelRun) {
	run.operand("x").each(func(_, _ int64, at *float64) { *at, _ = run.capped(*at) })
}

func argmaxKernel(run *kernelRun) {
	x := run.operand("x")
	for i := range x.Rows {
		best := int64(0)
		for j := range x.Columns {
			if *x.At(i, j) > *x.At(i, best) {
				best = j
			}
		}
		*run.operand("y").At(i, 0) = float64(best)
	}
}
