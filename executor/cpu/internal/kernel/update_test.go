package kernel_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cpu/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/recipetest"
	"github.com/devmap-dev/devmap/modelgraph"
)

// tied makes operand i the second of three uses of a weight.
func (trial *trial) tied(i int) *trial {
	own := trial.tests[i]
	uses, twins := make([]kernel.Matrix, 3), make([]recipetest.Matrix, 3)
	for use := range uses {
		other := newTrial(trial.t, trial.random, "", "").with("x", own.DType, own.Rows, own.Columns, 1)
		uses[use], twins[use] = other.call.Operands[0], other.judge.Operands[0]
	}
	uses[1], twins[1] = trial.call.Operands[i], trial.judge.Operands[i]
	trial.call.Uses, trial.judge.Uses = make([][]kernel.Matrix, len(trial.tests)), make([][]recipetest.Matrix, len(trial.tests))
	trial.call.Uses[i], trial.judge.Uses[i] = uses, twins
	return trial
}

// settings gives a trial the optimizer's settings.
func (trial *trial) settings(step int64, settings executor.Optimizer) *trial {
	trial.call.Step, trial.judge.Step = step, step
	trial.call.Optimizer, trial.judge.Optimizer = &settings, recipetest.Optimizer(settings)
	return trial
}

// TestSquares: squared norms, of tied weights those of the sum.
func TestSquares(t *testing.T) {
	random := seeded(t)
	for _, dtype := range dtypes {
		for _, rows := range []int64{1, 500} {
			made := func() *trial {
				return newTrial(t, random, "square", fmt.Sprintf("rows=%d columns=170", rows)).with("x", dtype, rows, 170, 1)
			}
			made().with(">y", modelgraph.F32, 1, 1, 1).run(1e-6, 1e-6)
			made().with(">y", modelgraph.F32, 1, 1, 1).tied(0).run(1e-6, 1e-6)
		}
	}
}

// TestUpdates: both optimizers in every precision, clipped or not, on the first
// step and a later one, of a tied weight on the sum of its gradients.
func TestUpdates(t *testing.T) {
	random := seeded(t)
	for _, name := range []string{"adamw", "sgd"} {
		for _, precision := range []string{"32-true", "bf16-true", "bf16-mixed"} {
			for _, clip := range []float64{0, 1, 1e6} {
				for _, step := range []int64{1, 7} {
					wide, narrow := modelgraph.F32, modelgraph.F32
					if precision != "32-true" {
						narrow = modelgraph.BF16
					}
					if precision == "bf16-true" {
						wide = modelgraph.BF16
					}
					trial := newTrial(t, random, name, "rows=70 columns=500").with("gradient", wide, 70, 500, 1).
						filled("total", modelgraph.F32, 1, 1, func() float64 { return 12345 })
					if precision == "bf16-mixed" {
						trial.with("+master", wide, 70, 500, 1).with(">weight", narrow, 70, 500, 1)
					} else {
						trial.with("+weight", narrow, 70, 500, 1)
					}
					if name == "adamw" {
						trial.with("+mean", wide, 70, 500, 1).filled("+square", wide, 70, 500, func() float64 { return math.Abs(random.NormFloat64()) + 0.1 })
					}
					if step > 1 {
						trial.tied(0)
					}
					trial.settings(step, executor.Optimizer{Rate: 0.1, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8, Decay: 0.05, Clip: clip}).run(1e-6, 1e-2)
				}
			}
		}
	}
}
