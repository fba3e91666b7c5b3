package kernel_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// over adds an operand that lies where operand i does.
func (trial *trial) over(role string, i int) *trial {
	trial.with(role, trial.tests[i].DType, 1, 1, 1)
	last := len(trial.tests) - 1
	trial.tests[last], trial.call.Operands[last], trial.judge.Operands[last] = trial.tests[i], trial.call.Operands[i], trial.judge.Operands[i]
	trial.kernel.Operands[i].Mode = '+' // it is changed after all
	return trial
}

// begins says whether gradients are written or added to.
func (trial *trial) begins(begins bool) *trial {
	trial.call.Begins, trial.judge.Begins = begins, begins
	return trial
}

// dims are those of the trial's kernel as its line has them.
func (trial *trial) dims() string {
	line := ""
	for _, dim := range trial.kernel.Dims {
		line += fmt.Sprintf("%s=%s ", dim.Name, dim.Value)
	}
	return line
}

// equal reports an operand that another trial has bit for bit.
func (trial *trial) equal(i int, other *trial) bool {
	for row := range trial.tests[i].Rows {
		for column := range trial.tests[i].Columns {
			if math.Float64bits(trial.tests[i].at(row, column)) != math.Float64bits(other.tests[i].at(row, column)) {
				return false
			}
		}
	}
	return true
}

// TestRows: rows taken over and added up.
func TestRows(t *testing.T) {
	random := seeded(t)
	for _, dtype := range dtypes {
		newTrial(t, random, "copy", "rows=5 columns=7").with("x", dtype, 5, 7, 1).with(">y", dtype, 5, 7, 1).run(0, 0)
		newTrial(t, random, "cast", "rows=300 columns=170").with("x", modelgraph.F32, 300, 170, 1).with(">y", dtype, 300, 170, 1).run(0, 1e-2)
		newTrial(t, random, "last", "sequences=3 seq=4 columns=7").with("x", dtype, 12, 7, 1).with(">y", dtype, 3, 7, 1).run(0, 0)
		newTrial(t, random, "first", "sequences=3 seq=4 columns=7").with("x", dtype, 12, 7, 1).with(">y", dtype, 3, 7, 1).run(0, 0)
		for _, rows := range []int64{1, 127, 128, 1000} {
			parts := min(rows, 128)
			newTrial(t, random, "column_sums", fmt.Sprintf("rows=%d columns=70", rows)).with("x", dtype, rows, 70, 1).with(">sums", modelgraph.F32, parts, 70, 1).run(1e-6, 1e-6)
			for _, begins := range []bool{true, false} {
				newTrial(t, random, "add_rows", fmt.Sprintf("rows=%d columns=70", parts)).begins(begins).
					with("x", modelgraph.F32, parts, 70, 1).with("*d", dtype, 1, 70, 3).run(1e-6, 1e-2)
			}
		}
	}
}

// TestEmbeddings: rows by id and by position, scaled, added to the stream in
// place; back, rows of one id added up, all others 0 or as they were.
func TestEmbeddings(t *testing.T) {
	random := seeded(t)
	for _, dtype := range dtypes {
		for _, scale := range []float64{1, 5.656854249492381} {
			for _, shape := range [][4]int64{{1, 1, 1, 1}, {3, 5, 7, 9}, {4, 200, 50, 300}} {
				sequences, seq, width, vocab := shape[0], shape[1], shape[2], shape[3]
				rows := sequences * seq
				dims := fmt.Sprintf("rows=%d columns=%d", rows, width)
				if scale != 1 {
					dims += fmt.Sprint(" scale=", scale)
				}
				id := func() float64 { return float64(random.Int64N(vocab)) }
				newTrial(t, random, "embedding", dims).filled("ids", int32Type, sequences, seq, id).
					with("table", dtype, vocab, width, 1).with(">y", dtype, rows, width, 1).run(1e-6, 1e-2)
				added := newTrial(t, random, "embedding", fmt.Sprintf("%s seq=%d", dims, seq))
				added.least = scale // sums of single numbers may cancel out
				added.with("add", dtype, rows, width, 1).with("table", dtype, seq+2, width, 1).over(">y", 0).run(1e-6, 1e-2)
				decoded := newTrial(t, random, "embedding", fmt.Sprintf("%s past=%d", dims, seq))
				decoded.call.Past, decoded.judge.Past = 1, 1
				decoded.with("table", dtype, seq+2, width, 1).with(">y", dtype, sequences, width, 1).run(1e-6, 1e-2)

				sorted := newTrial(t, random, "sort", fmt.Sprintf("rows=%d", rows)).filled("ids", int32Type, sequences, seq, id).
					with(">order", int32Type, 2, rows, 1).with(">work", int32Type, 2, rows, 1)
				sorted.sorts()
				for _, more := range []string{"", fmt.Sprint(" padding=", int64(id()))} {
					for _, begins := range []bool{true, false} {
						byID := newTrial(t, random, "embedding_backward", dims+more)
						byPlace := newTrial(t, random, "embedding_backward", fmt.Sprintf("%s seq=%d", dims, seq))
						if !begins {
							byID.least, byPlace.least = scale, scale
						}
						byID.begins(begins).same("order", sorted, 1).
							with("dy", dtype, rows, width, 1).with("*d", dtype, vocab, width, 2).run(1e-6, 1e-2)
						byPlace.begins(begins).
							with("dy", dtype, rows, width, 1).with("*d", dtype, seq+2, width, 2).run(1e-6, 1e-2)
					}
				}
			}
		}
	}
}

// sorts runs a sort: the order is the judge's, and both it and what it works
// with are written to the end.
func (trial *trial) sorts() {
	trial.t.Helper()
	work := trial.judge.Operands[2]
	trial.only(trial.t)
	trial.judge.Run(trial.t)
	for i := range 2 {
		if got := trial.distance(i); got != 0 {
			trial.t.Fatalf("%s: %s is %.3g away", trial.line(), trial.kernel.Operands[i].Role, got)
		}
	}
	for i := range work.Rows * work.Columns {
		if trial.tests[2].at(i/work.Columns, i%work.Columns) == -1 {
			trial.t.Fatalf("%s: value %d of work is not written", trial.line(), i)
		}
	}
}

var int32Type = func() modelgraph.DType {
	dtype, err := modelgraph.ParseDType("I32")
	if err != nil {
		panic(err)
	}
	return dtype
}()

// TestEmbeddingRefuses: an id that the table has no row of is an error, with it.
func TestEmbeddingRefuses(t *testing.T) {
	for _, id := range []float64{-1, 9} {
		trial := newTrial(t, seeded(t), "embedding", "rows=1 columns=7").filled("ids", int32Type, 1, 1, func() float64 { return id }).
			with("table", modelgraph.F32, 9, 7, 1).with(">y", modelgraph.F32, 1, 7, 1)
		if err := trial.fails(); err == nil || !slices.Contains([]string{
			"token 0 has the id or position -1, and the table 9 rows", "token 0 has the id or position 9, and the table 9 rows",
		}, err.Error()) {
			t.Errorf("id %v: %v", id, err)
		}
	}
}
