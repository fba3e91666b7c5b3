package estimate

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
)

// checkKnown refuses to train a model of which no layer's operation or cost
// is known, as a checkpoint read by its tensor names alone: its activations,
// logits and loss, most of a training peak, would be counted as nothing, and
// the answer be called optimal. A forward is weights before all; it and a
// model of which some layers are known get a warning.
func (e *estimator) checkKnown() error {
	if e.unknown == 0 {
		return nil
	}
	if e.w.Mode == costmodel.Train && e.known == 0 {
		return &costmodel.FieldError{Field: "mode", Msg: costmodel.Messagef("of none of the %d layers with parameters is the operation or a declared cost known (the first is %q), so activations, logits and loss of a training step cannot be counted: plan the weights with %v, or describe the operations in a model.json", e.unknown, e.firstUnknown, costmodel.Set("mode", "load"))}
	}
	e.warnings = append(e.warnings, fmt.Sprintf("no operation or cost is known for layer %q%s: activations of these are not counted, so peaks are lower bounds",
		e.firstUnknown, more(e.unknown-1)))
	return nil
}

func more(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}
