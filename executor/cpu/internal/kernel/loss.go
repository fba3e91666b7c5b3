package kernel

import "math"

// label returns the id that row i is to predict: the next id of its sequence, or -1 at the end.
func (call *Call) label(labels *Matrix, i int64) int64 {
	seq := call.size("seq", 1)
	if i%seq == seq-1 {
		return -1
	}
	return int64(labels.Int(i/seq, i%seq+1))
}

// softmaxSums updates three values of each row with a part of the vocabulary. They are the largest
// logit, Σ exp(logit - largest), and the label's logit (arXiv 1805.02867).
func softmaxSums(call *Call) error {
	logits, labels, sums := call.matrix("x"), call.matrix("labels"), call.matrix("sums")
	first, limit, round := call.size("first", 0), softCap(call.number("cap", 0)), logits.rounding()
	rows, columns := call.size("sequences", 1)*call.size("seq", 1), call.size("columns", logits.Columns)
	spread(rows, func(scratch *scratch) func(i int64) {
		row, running := scratch.take(columns), scratch.take(3)
		return func(i int64) {
			running[0], running[1], running[2] = float32(math.Inf(-1)), 0, 0
			if first > 0 {
				sums.Load(i, 0, running)
			}
			logits.Load(i, 0, row)
			most := running[0]
			for j, logit := range row {
				row[j] = limit.of(logit, round)
				most = max(most, row[j])
			}
			sum := float64(running[1]) * math.Exp(float64(running[0])-float64(most))
			for _, logit := range row {
				sum += float64(exp(logit - most))
			}
			running[0], running[1] = most, float32(sum)
			if label := call.label(labels, i) - first; label >= 0 && label < columns {
				running[2] = row[label]
			}
			sums.Store(i, 0, running)
		}
	})
	return nil
}

// loss is the mean over the labels of log Σ exp(logit) - the label's logit.
func loss(call *Call) error {
	sums, labels, lse, out := call.matrix("sums"), call.matrix("labels"), call.matrix("lse"), call.matrix("loss")
	total, count, running := 0., 0., make([]float32, 3)
	for i := range call.size("sequences", 1) * call.size("seq", 1) {
		sums.Load(i, 0, running)
		logarithm := float64(running[0]) + math.Log(float64(running[1]))
		lse.Store(i, 0, []float32{float32(logarithm)})
		if call.label(labels, i) >= 0 {
			total, count = total+logarithm-float64(running[2]), count+1
		}
	}
	out.Store(0, 0, []float32{float32(total / count)})
	return nil
}

// count is the number of labels.
func count(call *Call) error {
	labels, count := call.matrix("labels"), float32(0)
	for i := range call.size("sequences", 1) * call.size("seq", 1) {
		if call.label(labels, i) >= 0 {
			count++
		}
	}
	call.matrix("y").Store(0, 0, []float32{count})
	return nil
}

// lossBackward replaces logits by their gradients: softmax, minus 1 at the label, through the cap,
// divided by the numbers of labels and micro-batches.
func lossBackward(call *Call) error {
	logits, labels, lse, counted := call.matrix("x"), call.matrix("labels"), call.matrix("lse"), make([]float32, 1)
	call.matrix("counted").Load(0, 0, counted)
	first, limit, round := call.size("first", 0), softCap(call.number("cap", 0)), logits.rounding()
	rows, columns := call.size("sequences", 1)*call.size("seq", 1), call.size("columns", logits.Columns)
	share := 1 / (float64(counted[0]) * call.number("micro_batches", 1))
	spread(rows, func(scratch *scratch) func(i int64) {
		row, logarithm := scratch.take(columns), scratch.take(1)
		return func(i int64) {
			label := call.label(labels, i)
			if label < 0 {
				clear(row)
				logits.Store(i, 0, row)
				return
			}
			logits.Load(i, 0, row)
			lse.Load(i, 0, logarithm)
			for j, logit := range row {
				capped := limit.of(logit, round)
				gradient := float64(exp(capped - logarithm[0]))
				if first+int64(j) == label {
					gradient--
				}
				row[j] = float32(gradient * limit.slope(capped) * share)
			}
			logits.Store(i, 0, row)
		}
	})
	return nil
}
