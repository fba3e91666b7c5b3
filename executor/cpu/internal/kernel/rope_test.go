package kernel_test

import (
	"fmt"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// rotations are dims of all types of rotation, of heads of 8 and of 80.
var rotations = []string{
	"rope=default width=8 base=10000",
	"rope=default width=4 base=500000",
	"rope=linear width=8 base=10000 factor=4",
	"rope=dynamic width=8 base=10000 factor=2 trained=64",
	"rope=llama3 width=8 base=500000 factor=8 trained=32 slow=1 fast=4",
	"rope=yarn width=8 base=10000 factor=4 trained=32",
	"rope=yarn width=8 base=100 factor=4 trained=32 slow=1 fast=2 attention_factor=0.7 truncate=false",
	"", // heads that are normed alone
}

func TestRope(t *testing.T) {
	random := seeded(t)
	for _, dtype := range dtypes {
		for _, rotation := range rotations {
			for _, seq := range []int64{1, 65, 129} {
				rows := 2 * seq
				dims := fmt.Sprintf("rows=%d heads=4 kv=2 dim=8 seq=%d %s", rows, seq, rotation)
				newTrial(t, random, "rope", dims).with("+q", dtype, rows, 32, 1).with("+k", dtype, rows, 16, 1).run(1e-6, 1e-2)
				newTrial(t, random, "rope_backward", dims).with("+dq", dtype, rows, 32, 1).with("+dk", dtype, rows, 16, 1).run(1e-6, 1e-2)
				norms(t, random.Int64N(128)+1, newTrial(t, random, "qknorm", dims+" epsilon=1e-5 style=rms"), dtype, rows)
				norms(t, min(rows, 128), newTrial(t, random, "qknorm", dims+" epsilon=1e-2 style="+string(modelgraph.GemmaRMSNorm)), dtype, rows)
			}
		}
	}
}

// norms is a trial of qknorm and of its backward, of weights in so many parts.
func norms(t *testing.T, parts int64, trial *trial, dtype modelgraph.DType, rows int64) {
	t.Helper()
	weight := func() float64 { return 1 + trial.random.NormFloat64()/4 }
	trial.with("q", dtype, rows, 32, 1).with("k", dtype, rows, 16, 1).filled("qweight", dtype, 1, 8, weight).filled("kweight", dtype, 1, 8, weight).
		with(">yq", dtype, rows, 32, 0).with(">yk", dtype, rows, 16, 0).run(1e-6, 1e-2)
	back := newTrial(t, trial.random, "qknorm_backward", "")
	back.kernel.Dims = trial.kernel.Dims
	for i, role := range []string{"q", "k", "qweight", "kweight"} {
		back.same(role, trial, i)
	}
	back.with("+dq", dtype, rows, 32, 1).with("+dk", dtype, rows, 16, 1).
		with(">qsums", modelgraph.F32, parts, 8, 0).with(">ksums", modelgraph.F32, parts, 8, 0).run(1e-6, 1e-2)
}

// TestRopeDecodes: what is decoded stands behind the prompt and what was made
// since, and dynamic scaling follows the length so far. Far behind, angles are
// those of fp32, which are off the exact ones by more than the bound.
func TestRopeDecodes(t *testing.T) {
	random := seeded(t)
	for _, past := range []int{60, 100_000} {
		for _, rotation := range rotations {
			trial := newTrial(t, random, "rope", fmt.Sprintf("rows=3 heads=4 kv=2 dim=8 past=%d %s", past, rotation))
			trial.call.Past, trial.judge.Past = 7, 7
			trial.with("+q", modelgraph.F32, 3, 32, 1).with("+k", modelgraph.F32, 3, 16, 1).run(1e-6, 1e-2)
		}
	}
}

// TestNormsInPlace: inference writes the normed heads over what they were.
func TestNormsInPlace(t *testing.T) {
	random := seeded(t)
	made := newTrial(t, random, "qknorm", "rows=5 heads=4 kv=2 dim=8 seq=5 epsilon=1e-5 style=rms "+rotations[0])
	norms(t, 5, made, modelgraph.BF16, 5)
	for i, role := range []int{4, 5} {
		made.call.Operands[role] = made.call.Operands[i]
	}
	made.only(t)
	for i, role := range []int{4, 5} {
		for row := range made.tests[i].Rows {
			for column := range made.tests[i].Columns {
				if got, want := made.tests[i].at(row, column), made.tests[role].at(row, column); got != want {
					t.Fatalf("row %d, column %d: %v in place, %v elsewhere", row, column, got, want)
				}
			}
		}
	}
}
