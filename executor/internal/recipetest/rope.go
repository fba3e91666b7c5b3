package recipetest

import (
	"math"

	"github.com/devmap-dev/devmap/modelgraph"
)

// frequencies returns those of the rotation in the dims.
func (run *kernelRun) frequencies(tokens int64) (inverse []float32, factor float64) {
	rotation := modelgraph.Rotation{Type: run.dims["rope"], Base: run.number("base"), Width: run.size("width")}
	for name, field := range map[string]*float64{"factor": &rotation.Factor, "slow": &rotation.Slow, "fast": &rotation.Fast, "attention_factor": &rotation.AttentionFactor} {
		if run.has(name) {
			*field = run.number(name)
		}
	}
	if run.has("trained") {
		rotation.Trained = run.size("trained")
	}
	rotation.Untruncated = run.dims["truncate"] == "false"
	attention := modelgraph.Attention{HeadDim: run.size("dim"), Rope: true, Rotation: rotation}
	inverse, factor, err := attention.Frequencies(tokens)
	if err != nil {
		run.tb.Fatal(err)
	}
	return inverse, factor
}

// turn rotates the heads of x in place, or back. Angles are in fp32 as in torch: at position 1,000
// that differs by 3e-5 from the exact angle, and is part of the model.
func (run *kernelRun) turn(x Matrix, back bool) {
	if !run.has("rope") {
		return
	}
	dim, width := run.size("dim"), run.size("width")
	inverse, factor := run.frequencies(run.position(x.Rows-1) + 1)
	for i := range x.Rows {
		position := float32(run.position(i))
		for j := range width / 2 {
			angle := float64(position * inverse[j])
			cos, sin := factor*math.Cos(angle), factor*math.Sin(angle)
			if back {
				sin = -sin
			}
			for head := int64(0); head < x.Columns; head += dim {
				a, b := x.At(i, head+j), x.At(i, head+j+width/2)
				*a, *b = *a*cos-*b*sin, *b*cos+*a*sin
			}
		}
	}
}

func ropeKernel(run *kernelRun) {
	for _, role := range []string{"q", "k"} {
		run.turn(run.operand(role), false)
	}
}

func ropeBackward(run *kernelRun) {
	for _, role := range []string{"dq", "dk"} {
		run.turn(run.operand(role), true)
	}
}

// headNorm returns 1/σ of a head, and the factor of its element j.
func (run *kernelRun) headNorm(x Matrix, i, head int64, weight Matrix) (rstd float64, factor func(j int64) float64) {
	dim, squares := run.size("dim"), 0.
	for j := range dim {
		squares += *x.At(i, head+j) * *x.At(i, head+j) / float64(dim)
	}
	return 1 / math.Sqrt(squares+run.number("epsilon")), func(j int64) float64 {
		if run.dims["style"] == string(modelgraph.GemmaRMSNorm) {
			return 1 + *weight.At(0, j)
		}
		return *weight.At(0, j)
	}
}

func qknormKernel(run *kernelRun) {
	for _, role := range []string{"q", "k"} {
		x, y, dim := run.operand(role), run.operand("y"+role), run.size("dim")
		for i := range x.Rows {
			for head := int64(0); head < x.Columns; head += dim {
				rstd, factor := run.headNorm(x, i, head, run.operand(role+"weight"))
				for j := range dim {
					*y.At(i, head+j) = *x.At(i, head+j) * rstd * factor(j)
				}
			}
		}
		run.turn(y, false)
	}
}

func qknormBackward(run *kernelRun) {
	for _, role := range []string{"q", "k"} {
		x, gradient, sums, dim := run.operand(role), run.operand("d"+role), run.operand(role+"sums"), run.size("dim")
		sums.each(func(_, _ int64, at *float64) { *at = 0 })
		run.turn(gradient, true)
		for i := range x.Rows {
			for head := int64(0); head < x.Columns; head += dim {
				rstd, factor := run.headNorm(x, i, head, run.operand(role+"weight"))
				product := 0.
				for j := range dim {
					normed := *x.At(i, head+j) * rstd
					*sums.At(i%sums.Rows, j) += *gradient.At(i, head+j) * normed
					product += *gradient.At(i, head+j) * factor(j) * normed / float64(dim)
				}
				for j := range dim {
					at := gradient.At(i, head+j)
					*at = rstd * (*at*factor(j) - *x.At(i, head+j)*rstd*product)
				}
			}
		}
	}
}
