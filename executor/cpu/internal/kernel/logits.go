package kernel

import "math"

// softCap is cap·tanh(logit/cap); 0: there is none.
type softCap float64

// of caps a logit, and rounds after each operation as Transformers' heads do
// (Gemma2ForCausalLM.forward).
func (limit softCap) of(logit float32, round func(value float32) float32) float32 {
	if limit == 0 {
		return logit
	}
	tanh := round(float32(math.Tanh(float64(round(logit / float32(limit))))))
	return round(tanh * float32(limit))
}

// slope returns the derivative of the cap, from a capped logit.
func (limit softCap) slope(capped float32) float64 {
	if limit == 0 {
		return 1
	}
	tanh := float64(capped) / float64(limit)
	return 1 - tanh*tanh
}

func softcap(call *Call) error {
	logits, limit := call.matrix("x"), softCap(call.number("cap", 0))
	round := logits.rounding()
	columns := call.size("columns", logits.Columns)
	inRows(call.size("rows", 0), columns, func(first, end int64) {
		row := make([]float32, columns)
		for i := first; i < end; i++ {
			logits.Load(i, 0, row)
			for j, logit := range row {
				row[j] = limit.of(logit, round)
			}
			logits.Store(i, 0, row)
		}
	})
	return nil
}

// argmax returns the first of the largest logits, as torch.argmax does on a processor.
func argmax(call *Call) error {
	logits, ids := call.matrix("x"), call.matrix("y")
	row := make([]float32, call.size("columns", logits.Columns))
	for i := range call.size("rows", 0) {
		logits.Load(i, 0, row)
		best := 0
		for j, logit := range row {
			if logit > row[best] {
				best = j
			}
		}
		ids.SetInt(i, 0, int32(best))
	}
	return nil
}
