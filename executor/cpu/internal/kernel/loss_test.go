package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

var int32s = func() modelgraph.DType {
	dtype, err := modelgraph.ParseDType("I32")
	if err != nil {
		panic(err)
	}
	return dtype
}()

// TestLoss checks losses and gradients of logits for a vocabulary in parts, the last a narrow one,
// with and without caps. Rows that predict nothing are among them. Logits are small: in bf16 a cap
// is rounded three times, as in Transformers, which for large logits changes exp by more than a
// hundredth.
func TestLoss(t *testing.T) {
	random := seeded(t)
	for _, dtype := range dtypes {
		for _, seq := range []int64{2, 7, 64} {
			for _, limit := range []string{"", " cap=3"} {
				head(t, random, dtype, 3, seq, []int64{100, 100, 1}, limit)
			}
		}
	}
}

func head(t *testing.T, random *rand.Rand, dtype modelgraph.DType, sequences, seq int64, parts []int64, limit string) {
	t.Helper()
	rows, vocab := sequences*seq, int64(0)
	for _, part := range parts {
		vocab += part
	}
	place := fmt.Sprintf("sequences=%d seq=%d", sequences, seq)
	labels := newTrial(t, random, "count", place).filled("labels", int32s, sequences, seq, func() float64 { return float64(random.Int64N(vocab)) }).
		with(">y", modelgraph.F32, 1, 1, 0).run(0, 0)
	var sums *trial
	logits, first := make([]*trial, len(parts)), int64(0)
	for i, part := range parts {
		logits[i] = newTrial(t, random, "softmax_sums", fmt.Sprintf("%s first=%d columns=%d%s", place, first, part, limit)).
			with("x", dtype, rows, part, 0.7).same("labels", labels, 0)
		if sums == nil {
			// Rows without a label keep a 0, which has no meaning.
			logits[i].with(">sums", modelgraph.F32, rows, 3, 0).zero(2)
		} else {
			logits[i].same("+sums", sums, 2)
		}
		sums = logits[i].run(1e-6, 1e-2)
		first += part
	}
	loss := newTrial(t, random, "loss", place).same("sums", sums, 2).same("labels", labels, 0).
		with(">lse", modelgraph.F32, rows, 1, 0).with(">loss", modelgraph.F32, 1, 1, 0).run(1e-6, 1e-2)
	first = 0
	for i, part := range parts {
		newTrial(t, random, "loss_backward", fmt.Sprintf("%s first=%d columns=%d%s micro_batches=3", place, first, part, limit)).
			same("+x", logits[i], 0).same("lse", loss, 2).same("labels", labels, 0).same("counted", labels, 1).run(1e-6, 1e-2)
		first += part
	}
}

// zero has the judge begin with zeros in the place of the kernel's poison.
func (trial *trial) zero(i int) *trial {
	clear(trial.judge.Operands[i].Values)
	return trial
}

func TestSoftcap(t *testing.T) {
	random := seeded(t)
	for _, dtype := range dtypes {
		newTrial(t, random, "softcap", "rows=5 columns=77 cap=30").with("+x", dtype, 5, 77, 20).run(1e-6, 1e-2)
	}
}

// TestArgmax: of equals the first.
func TestArgmax(t *testing.T) {
	random := seeded(t)
	for _, dtype := range dtypes {
		newTrial(t, random, "argmax", "rows=40 columns=9").filled("x", dtype, 40, 9, func() float64 { return -float64(random.IntN(4)) }).
			with(">y", int32s, 40, 1, 0).run(0, 0)
		newTrial(t, random, "argmax", "rows=4 columns=999").with("x", dtype, 4, 999, 1).with(">y", int32s, 4, 1, 0).run(0, 0)
	}
}
