package show

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/serve"
)

// Served prints what an engine that serves gets, and what it would choose itself.
func Served(printer *Printer, question *serve.Question, answer *serve.Answer) {
	limit := "the context is the one asked for"
	switch {
	case answer.Full:
		limit = "no longer context fits"
	case question.Set.Context == 0:
		limit = "the model was trained for no more"
	}
	printer.printf("Fits: %s of %s tokens, %s cache (%s).\n", Plural(answer.Set.Sequences, "sequence"), grouped(answer.Set.Context), answer.Set.KeyType, limit)
	printer.printf("Host: %v.\n", costmodel.Bytes(answer.OnHost.Weights+answer.OnHost.Cache))
	if question.Set.Context > 0 {
		return
	}
	left := ""
	if !answer.OnDevices && question.Model.Experts == 0 {
		left = ", with blocks on the host"
	}
	printer.printf("llama.cpp's own --fit would choose %s tokens%s.\n", grouped(answer.Fit), left)
}
