package show

import (
	"fmt"
	"io"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
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
	printOthers(printer, question, answer)
	if question.Set.Context > 0 {
		return
	}
	left := ""
	if !answer.OnDevices && question.Model.Experts == 0 {
		left = ", with blocks on the host"
	}
	printer.printf("llama.cpp's own --fit would choose %s tokens%s.\n", grouped(answer.Fit), left)
}

// printOthers prints what the table of GPUs does not have: the host, other models, and the time of a token.
func printOthers(printer *Printer, question *serve.Question, answer *serve.Answer) {
	printer.printf("Host: %v.\n", costmodel.Bytes(answer.OnHost.Weights+answer.OnHost.Cache))
	if encoder := question.Encoder; encoder != nil {
		printer.printf("Encoder of images: %v on GPU 0, %v of it a buffer.\n", costmodel.Bytes(encoder.Weights+encoder.Compute), costmodel.Bytes(encoder.Compute))
	}
	if question.Draft != nil {
		var sum int64
		var on []string
		for i, used := range answer.Extra {
			if i == 0 && question.Encoder != nil {
				used.Weights, used.Compute = used.Weights-question.Encoder.Weights, used.Compute-question.Encoder.Compute
			}
			if sum += used.Total(); used.Total() > 0 {
				on = append(on, fmt.Sprint(i))
			}
		}
		printer.printf("Draft: %v on GPU %s.\n", costmodel.Bytes(sum), strings.Join(on, ", "))
	}
	if full := answer.Seconds(question, answer.Set.Context); full > 0 {
		printer.printf("At most %s tokens/s, with a full context %s: reading weights and cache at the data sheet's bandwidth. A limit, not measured.\n", rate(answer.Seconds(question, 1)), rate(full))
	}
}

// rate is the number of tokens in a second.
func rate(seconds float64) string {
	const exact = 100
	if per := 1 / seconds; per < exact {
		return fmt.Sprintf("%.1f", per)
	}
	return grouped(int64(1 / seconds))
}

// Given prints a placement that was given, and devmap's own for comparison; nil: it has none.
func Given(printer *Printer, question *serve.Question, given, best *serve.Answer, how string) {
	printer.printf("%s Units of each GPU: %s.\n", how, numbers(given.Counts))
	printOthers(printer, question, given)
	if best != nil {
		printer.printf("devmap plan: units %s, %s.\n", numbers(best.Counts), best.Summary())
	}
}

// Next prints the next command.
func Next(printer *Printer, command string) { printer.printf("Next: %s\n", out.OneLine(command)) }

func numbers(counts []int) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(counts)), ", "), "[]")
}

// ServedUnit is a row of the table of a GGUF file's units.
type ServedUnit struct {
	Name                 string
	Params, Bytes, Cache int64
	Types                []string
}

// ServedModel describes a model for an engine that serves.
type ServedModel struct {
	Name, Architecture string
	Kind               string // type of the cache
	Window             int64  // tokens that some layers keep; 0: all keep all
	Recurrent          bool   // some layers keep a state of a sequence
	Trained            int64  // the longest context; 0: unknown
}

// ServedUnits writes the table of the units of a model. It is a result: a write error is returned.
func ServedUnits(to io.Writer, model ServedModel, units []ServedUnit) error {
	table := &sheet{headings: []string{"unit", "parameters", "bytes", "KV a token", "types"}, left: []string{"unit", "types"}, spare: []string{"parameters"}}
	var bytes, cache, params int64
	for i := range units {
		unit := &units[i]
		bytes, cache, params = bytes+unit.Bytes, cache+unit.Cache, params+unit.Params
		table.rows = append(table.rows, []any{out.Cell(unit.Name), grouped(unit.Params), costmodel.Bytes(unit.Bytes), costmodel.Bytes(unit.Cache), strings.Join(unit.Types, " ")})
	}
	title := fmt.Sprintf("%s, architecture %s, %s parameters (%v) in %s; KV cache in %s: %v a token", out.Cell(model.Name), out.Cell(model.Architecture), grouped(params), costmodel.Bytes(bytes), Plural(len(units), "unit"), model.Kind, costmodel.Bytes(cache))
	if model.Window > 0 {
		title += fmt.Sprintf(" (some blocks keep %s tokens)", grouped(model.Window))
	}
	if model.Recurrent {
		title += "; other blocks keep a state of a sequence"
	}
	if model.Trained > 0 {
		title += fmt.Sprintf("; trained for %s tokens", grouped(model.Trained))
	}
	width := max(out.Width(to), minWidth)
	if out.Terminal(to) {
		title = hanging(title, width)
	}
	text, lost := table.fitting(width, nil)
	return out.Say(to, "%s\n", out.Block(strings.TrimSuffix(title+"\n"+text+"\n"+leftOut(lost), "\n")))
}
