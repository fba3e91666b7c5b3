package recipetest

import (
	"math"
)

// label returns the id that row i is to predict: the next id of its sequence, or -1 at the end.
func (run *kernelRun) label(i int64) int64 {
	labels, seq := run.operand("labels"), run.size("seq")
	if i%seq == seq-1 {
		return -1
	}
	return int64(*labels.At(i/seq, i%seq+1))
}

// capped returns a logit under its cap, and the slope of the cap there.
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
		largest, sum, label := sums.At(i, 0), sums.At(i, 1), run.label(i)
		if first == 0 {
			*largest, *sum = math.Inf(-1), 0
		}
		for j := range x.Columns {
			value, _ := run.capped(*x.At(i, j))
			most := max(*largest, value)
			*sum = *sum*math.Exp(*largest-most) + math.Exp(value-most)
			*largest = most
			if first+j == label {
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
	x, lse, first := run.operand("x"), run.operand("lse"), run.size("first")
	counted, parts := *run.operand("counted").At(0, 0), run.number("micro_batches")
	for i := range x.Rows {
		label := run.label(i)
		for j := range x.Columns {
			at := x.At(i, j)
			if label < 0 {
				*at = 0
				continue
			}
			value, slope := run.capped(*at)
			gradient := math.Exp(value - *lse.At(i, 0))
			if first+j == label {
				gradient--
			}
			*at = gradient * slope / counted / parts
		}
	}
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
