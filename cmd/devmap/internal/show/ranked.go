package show

import (
	"fmt"
	"io"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/serve"
)

// Ranked prints what an engine with ranks gets, and the best degrees.
func Ranked(printer *Printer, answer *serve.RankAnswer) {
	for _, said := range RankedFacts(answer) {
		printer.printf("%s\n", said)
	}
	const most = 3
	RankedRows(printer, append([]*serve.RankAnswer{answer}, answer.Others[:min(most, len(answer.Others))]...))
}

// RankedFacts returns an answer's context and what limits it, and the engine's own split, a sentence each.
func RankedFacts(answer *serve.RankAnswer) []string {
	set := &answer.Set
	limit := "the longest of the model, or the one asked for"
	if answer.Full {
		limit = "no longer one fits"
	}
	said := []string{
		fmt.Sprintf("Fits: a context of %s tokens (%s).", grouped(set.Context), limit),
		fmt.Sprintf("GPU %d is the fullest.", answer.Limit),
	}
	switch {
	case len(answer.Counts) < 2 || answer.Own == answer.Tokens:
	case answer.Own == 0:
		said = append(said, "The engine's own split of the layers does not start.")
	default:
		said = append(said, fmt.Sprintf("The engine's own split of the layers: %s tokens in the cache.", grouped(answer.Own)))
	}
	return said
}

// degreesOf names the degrees by the engine's flags, and the layers of each stage.
func degreesOf(answer *serve.RankAnswer) string {
	set := &answer.Set
	words := []string{fmt.Sprintf("tp %d", set.Tensor)}
	if set.Pipeline > 1 {
		var counts []string
		for i := 0; i < len(answer.Counts); {
			end := i + 1
			for end < len(answer.Counts) && answer.Counts[end] == answer.Counts[i] {
				end++
			}
			text := fmt.Sprint(answer.Counts[i])
			if end > i+1 {
				text = fmt.Sprintf("%d×%d", end-i, answer.Counts[i])
			}
			counts, i = append(counts, text), end
		}
		words = append(words, fmt.Sprintf("pp %d (%s)", set.Pipeline, strings.Join(counts, ",")))
	}
	if set.Data > 1 {
		words = append(words, fmt.Sprintf("dp %d", set.Data))
	}
	if set.Experts > 0 {
		words = append(words, fmt.Sprintf("ep %d", set.Experts))
	}
	return strings.Join(words, ", ")
}

// tokensOf are the tokens in the cache; a model with states alone has none.
func tokensOf(answer *serve.RankAnswer) string {
	if answer.Tokens == 0 {
		return nothing
	}
	return grouped(answer.Tokens)
}

// RankedRows prints a table of answers, the best first.
func RankedRows(printer *Printer, answers []*serve.RankAnswer) {
	table := texttab.New("Degrees", "Context", "KV tokens", "Own split", "Token at least", "Fullest GPU").Compact()
	for at := 1; at < 6; at++ {
		table.Right(at)
	}
	for _, answer := range answers {
		own, pace := grouped(answer.Own), Seconds(answer.Seconds)
		if answer.Own == 0 || answer.Tokens == 0 {
			own = nothing
		}
		if answer.Seconds == 0 {
			pace = nothing
		}
		table.Row(degreesOf(answer), grouped(answer.Set.Context), tokensOf(answer), own, pace, fmt.Sprintf("%.1f%%", 100*answer.Share))
	}
	table.Fit(0, narrowest, printer.width)
	printer.printf("%s\n", out.Block(table.String()))
	printer.printf("KV tokens: in the whole cache. Own split: with the engine's own split of the layers.\n")
}

// Logged prints the figures of a start-up log next to those of the plan's fullest GPU.
func Logged(to io.Writer, plan *devicemap.Plan, fullest *devicemap.Predicted, log *serve.Log) {
	table := texttab.New("Figure", "Plan", "Log", "Difference").Compact()
	for at := 1; at < 4; at++ {
		table.Right(at)
	}
	bytes := func(name string, predicted, found int64) {
		if found >= 0 {
			table.Row(name, costmodel.Bytes(predicted).String(), costmodel.Bytes(found).String(), fmt.Sprintf("%+.2f GiB", float64(found-predicted)/(1<<30)))
		}
	}
	bytes("weights", fullest.ParamsBytes, log.Weights)
	if log.Activation >= 0 {
		bytes("buffers and graphs", fullest.WorkspaceBytes, log.Activation+max(log.Graphs, log.Estimate, 0))
	}
	bytes("KV cache", fullest.KVCacheBytes, log.Cache)
	if log.Tokens >= 0 {
		predicted := plan.KVTokens / plan.Workload.DP.Count()
		table.Row("KV tokens", grouped(predicted), grouped(log.Tokens), fmt.Sprintf("%+.1f %%", 100*(float64(log.Tokens)/float64(max(1, predicted))-1)))
	}
	if log.Context >= 0 {
		table.Row("context", grouped(plan.Workload.Context), grouped(log.Context), fmt.Sprintf("%+d", log.Context-plan.Workload.Context))
	}
	out.Say(to, "%s\n", out.Block(table.String())) //nolint:errcheck // nothing to do about a closed stream
}
