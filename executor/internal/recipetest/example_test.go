package recipetest_test

import (
	"fmt"
	"testing"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/internal/recipetest"
)

// A gate in place: silu(gate)·up over what was gate.
func Example() {
	gate := recipetest.Matrix{Values: []float64{0, 1, -2}, Rows: 1, Columns: 3, Stride: 3}
	up := recipetest.Matrix{Values: []float64{5, 2, 1}, Rows: 1, Columns: 3, Stride: 3}
	call := recipetest.Call{
		Kernel: &recipe.Kernel{
			Name:     "gate",
			Dims:     []recipe.Dim{{Name: "rows", Value: "1"}, {Name: "columns", Value: "3"}, {Name: "activation", Value: "silu"}},
			Operands: []recipe.Operand{{Role: "gate", Mode: ' '}, {Role: "up", Mode: ' '}, {Role: "y", Mode: '>'}},
		},
		Operands: []recipetest.Matrix{gate, up, gate},
	}
	call.Run(new(testing.T))
	fmt.Printf("%.4f\n", gate.Values)
	// Output: [0.0000 1.4621 -0.2384]
}
