package recipetest

import (
	"math"
)

// pair returns the score of a query and a key, both given by their rows and heads.
func (run *kernelRun) pair(q, k Matrix, i, j, head, group int64) (score, slope float64) {
	query, key := q.Values[q.First+i*q.Stride+head*run.dim:][:run.dim], k.Values[k.First+j*k.Stride+group*run.dim:]
	for l := range query {
		score += query[l] * key[l]
	}
	return run.capped(score * run.factored)
}

// sees reports whether a position sees another one.
func (run *kernelRun) sees(position, other int64) bool {
	return (!run.has("causal") || other <= position) && (!run.has("window") || position-other < run.size("window"))
}

// pairs calls f for every query, head, and key that it sees.
func (run *kernelRun) pairs(f func(i, j, head, group int64)) {
	seq, heads, kv := run.size("seq"), run.size("heads"), run.size("kv")
	for i := range run.size("sequences") * seq {
		for other := range seq {
			if !run.sees(i%seq, other) {
				continue
			}
			for head := range heads {
				f(i, i/seq*seq+other, head, head/(heads/kv))
			}
		}
	}
}

func attentionKernel(run *kernelRun) {
	q, k, v, y, heads := run.operand("q"), run.operand("k"), run.operand("v"), run.operand("y"), run.size("heads")
	sums := make([]float64, q.Rows*heads)
	y.each(func(_, _ int64, at *float64) { *at = 0 })
	run.pairs(func(i, j, head, group int64) {
		score, _ := run.pair(q, k, i, j, head, group)
		sums[i*heads+head] += math.Exp(score)
		for l := range run.dim {
			*y.At(i, head*run.dim+l) += math.Exp(score) * *v.At(j, group*run.dim+l)
		}
	})
	y.each(func(i, j int64, at *float64) { *at /= sums[i*heads+j/run.dim] })
	if run.given("lse") {
		run.operand("lse").each(func(i, j int64, at *float64) { *at = math.Log(sums[i*heads+j]) })
	}
}

func attentionDelta(run *kernelRun) {
	y, dy, dim := run.operand("y"), run.operand("dy"), run.size("dim")
	run.operand("delta").each(func(i, j int64, at *float64) {
		*at = 0
		for l := range dim {
			*at += *y.At(i, j*dim+l) * *dy.At(i, j*dim+l)
		}
	})
}

// attentionBackward computes the three gradients.
func attentionBackward(run *kernelRun) {
	q, k, v, dy, dim := run.operand("q"), run.operand("k"), run.operand("v"), run.operand("dy"), run.size("dim")
	for _, role := range []string{"dq", "dk", "dv"} {
		run.operand(role).each(func(_, _ int64, at *float64) { *at = 0 })
	}
	lse, delta, dq, dk, dv := run.operand("lse"), run.operand("delta"), run.operand("dq"), run.operand("dk"), run.operand("dv")
	run.pairs(func(i, j, head, group int64) {
		score, slope := run.pair(q, k, i, j, head, group)
		part, gradient := math.Exp(score-*lse.At(i, head)), 0.
		for l := range dim {
			gradient += *dy.At(i, head*dim+l) * *v.At(j, group*dim+l)
		}
		gradient = part * (gradient - *delta.At(i, head)) * slope * run.factored
		for l := range dim {
			*dq.At(i, head*dim+l) += gradient * *k.At(j, group*dim+l)
			*dk.At(j, group*dim+l) += gradient * *q.At(i, head*dim+l)
			*dv.At(j, group*dim+l) += part * *dy.At(i, head*dim+l)
		}
	})
}
