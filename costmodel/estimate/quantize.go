package estimate

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// quantised are the tensors that stand for a quantised weight, in bytes, or
// nil where it keeps its type. Every linear layer but the output head is
// quantised (transformers/integrations/bitsandbytes.py,
// replace_with_bnb_linear).
func (e *estimator) quantised(t *modelgraph.Tensor) []int64 {
	n, ok := e.linears[t]
	if !ok || n.head || t.Tied() {
		return nil
	}
	switch e.w.Quantize {
	case costmodel.NF4:
		return nf4(t.Numel(), e.flat)
	case costmodel.Int8:
		return []int64{t.Numel(), 4 * n.out} // rows and their scales (Int8Params.CB, SCB)
	}
	return nil
}

// nf4 is bitsandbytes/functional.py quantize_4bit: two values a byte, an
// absolute maximum per 64 of them with the table of the 16 values; nested, the
// maxima are bytes, with an fp32 maximum per 256, their mean and a table of 256.
func nf4(n int64, flat bool) []int64 {
	blocks := (n + 63) / 64
	if flat {
		return []int64{(n + 1) / 2, 4 * blocks, 16 * 4}
	}
	return []int64{(n + 1) / 2, blocks, 16 * 4, 4 * ((blocks + 255) / 256), 4, 256 * 4}
}

// prepare is PEFT's prepare_model_for_kbit_training (peft/utils/other.py),
// which adapters on a quantised base are trained with: all that is not
// quantised becomes fp32, and with the embedding the residual stream does.
func (e *estimator) prepare() {
	w := &e.w
	if w.Mode != costmodel.Train || w.Quantize == "" {
		return
	}
	w.StoredTypes = false
	if !w.Precision.Mixed() {
		w.Precision = costmodel.FP32True
		e.warnOnce("what is not quantised is fp32, as PEFT's prepare_model_for_kbit_training makes it, and attention runs in fp32 with it; under autocast (Trainer's bf16=True) plan with --precision bf16-mixed")
	}
}

// keepInputs keeps what 8-bit linear layers hold of a recomputed unit until
// the loss is dropped: beside what the unit makes again, too. That it stays
// while the units before run backward is left out: no peak is there.
func (e *estimator) keepInputs(u int, out *costmodel.Unit) {
	if !out.Recompute {
		return
	}
	var all int64
	for k, i := range e.g.Units[u].Exec {
		if n := e.costs[i].Stays; n > 0 {
			out.Steps[k].Kept = n
			all += n
		}
	}
	if all == 0 {
		return
	}
	for k := range out.Steps {
		s := &out.Steps[k]
		s.Forward, s.Backward, s.Again = s.Forward+all, s.Backward+all, s.Again+all
	}
	e.warnOnce("linear layers of LLM.int8() keep their inputs although blocks are recomputed (bitsandbytes holds them outside autograd's saved tensors); --quantize nf4 does not")
}

func (e *estimator) warnOnce(text string) {
	if !slices.Contains(e.warnings, text) {
		e.warnings = append(e.warnings, text)
	}
}
