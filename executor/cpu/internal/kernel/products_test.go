package kernel_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/devmap-dev/devmap/modelgraph"
)

// shapes of products: single rows, sizes that tiles and blocks do not divide,
// more than one of each.
var shapes = [][3]int64{{1, 1, 1}, {3, 5, 7}, {1, 130, 513}, {65, 129, 3}, {257, 17, 33}, {70, 131, 1100}}

// TestProducts: every form, in both types, with what is added: bias, the
// stream, what a gradient holds.
func TestProducts(t *testing.T) {
	random := seeded(t)
	for _, dtype := range dtypes {
		for _, form := range []string{"nn", "nt", "tn"} {
			for _, shape := range shapes {
				m, n, k := shape[0], shape[1], shape[2]
				for _, more := range []string{"", "bias", "add", "bias add", "*", "* begins"} {
					a, b := [2]int64{m, k}, [2]int64{k, n}
					if form == "nt" {
						b = [2]int64{n, k}
					}
					if form == "tn" {
						a = [2]int64{k, m}
					}
					trial := newTrial(t, random, "gemm", fmt.Sprintf("form=%s m=%d n=%d k=%d", form, m, n, k)).
						with("a", dtype, a[0], a[1], 1).with("b", dtype, b[0], b[1], 1)
					if more == "bias" || more == "bias add" {
						trial.with("bias", dtype, 1, n, 3)
					}
					if more == "add" || more == "bias add" {
						trial.with("add", dtype, m, n, 3)
					}
					switch more {
					case "*", "* begins":
						trial.begins(more == "* begins").with("*d", dtype, m, n, 3)
					default:
						trial.with(">d", dtype, m, n, 1)
					}
					trial.least = trial.terms() // sums of single numbers may cancel out
					trial.run(1e-6, 1e-2)
				}
			}
		}
	}
}

// terms is how large what is summed up in the last operand is: the root of the
// mean of its terms' squares, which are what the judge comes to on the squares
// of all numbers. A sum is as near as its terms, however much of them cancels
// out (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., §4.2).
func (trial *trial) terms() float64 {
	squares := trial.judge
	squares.Operands = slices.Clone(squares.Operands)
	for i := range squares.Operands {
		values := slices.Clone(squares.Operands[i].Values)
		for j := range values {
			values[j] *= values[j]
		}
		squares.Operands[i].Values = values
	}
	squares.Run(trial.t)
	sums := squares.Operands[len(squares.Operands)-1].Values
	return math.Sqrt(floats.Sum(sums) / float64(len(sums)))
}

// TestProductsAdd: a product over what it adds, as every branch's last is.
func TestProductsAdd(t *testing.T) {
	random := seeded(t)
	for _, dtype := range dtypes {
		newTrial(t, random, "gemm", "form=nn m=70 n=90 k=600").with("a", dtype, 70, 600, 1).with("b", dtype, 600, 90, 1).
			with("add", dtype, 70, 90, 3).over(">d", 2).run(1e-6, 1e-2)
	}
	// The head's: factors in bf16, the sum over parts of the vocabulary in fp32.
	newTrial(t, random, "gemm", "form=nn m=70 n=90 k=600").with("a", modelgraph.BF16, 70, 600, 1).with("b", modelgraph.BF16, 600, 90, 1).
		with("add", modelgraph.F32, 70, 90, 3).over(">d", 2).run(1e-6, 1e-6)
}

// TestProductsRefuse: factors whose sizes do not match are a defect that the error
// names, and nothing is read past a matrix's end.
func TestProductsRefuse(t *testing.T) {
	for _, form := range []string{"nn", "nt", "tn"} {
		trial := newTrial(t, seeded(t), "gemm", "form="+form).with("a", modelgraph.F32, 3, 4, 1).with("b", modelgraph.F32, 5, 6, 1).with(">d", modelgraph.F32, 7, 8, 1)
		if err, want := trial.fails(), "gemm form="+form+": a is 3 × 4, b 5 × 6 and d 7 × 8"; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
