package show

import (
	"fmt"
	"io"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/serving/paged"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/serve"
)

// Ranked prints what an engine with ranks gets: the cache and what limits it, the engine's own split,
// and the next-best degrees.
func Ranked(printer *Printer, answer *serve.RankAnswer) {
	set := &answer.Set
	limit := "the context is the longest of the model, or the one asked for"
	if answer.Full {
		limit = "no longer context fits"
	}
	printer.printf("Fits: a context of %s tokens (%s).\n", grouped(set.Context), limit)
	printer.printf("Degrees: %s: %s tokens in the cache; GPU %d is the fullest%s.\n", degreesOf(answer), grouped(answer.Tokens), answer.Limit, paceOf(answer))
	switch {
	case len(answer.Counts) < 2 || answer.Own == answer.Tokens:
	case answer.Own == 0:
		printer.printf("The engine's own split of the layers does not start.\n")
	default:
		printer.printf("The engine's own split of the layers: %s tokens.\n", grouped(answer.Own))
	}
	const most = 3
	for _, other := range answer.Others[:min(most, len(answer.Others))] {
		text := ""
		if other.Set.Context != set.Context {
			text = fmt.Sprintf(", context %s", grouped(other.Set.Context))
		}
		printer.printf("  %s: %s tokens%s%s\n", degreesOf(other), grouped(other.Tokens), text, paceOf(other))
	}
}

// paceOf is the least time of a token, if it is known.
func paceOf(answer *serve.RankAnswer) string {
	if answer.Seconds == 0 {
		return ""
	}
	return fmt.Sprintf("; at least %s per token at full context", Seconds(answer.Seconds))
}

// degreesOf names the degrees by the engine's flags, and the layers of each stage.
func degreesOf(answer *serve.RankAnswer) string {
	set := &answer.Set
	words := []string{fmt.Sprintf("tp %d", set.Tensor)}
	if set.Pipeline > 1 {
		counts := make([]string, len(answer.Counts))
		for i, count := range answer.Counts {
			counts[i] = fmt.Sprint(count)
		}
		words = append(words, fmt.Sprintf("pp %d (%s)", set.Pipeline, strings.Join(counts, ",")))
	}
	if set.Data > 1 {
		words = append(words, fmt.Sprintf("dp %d", set.Data))
	}
	if set.Experts {
		words = append(words, "experts whole")
	}
	return strings.Join(words, ", ")
}

// RankedRows prints a table of answers, the best first.
func RankedRows(printer *Printer, answers []*serve.RankAnswer) {
	table := texttab.New("Degrees", "Context", "KV tokens", "Own split", "Token at least", "Fullest GPU").Compact()
	for at := 1; at < 6; at++ {
		table.Right(at)
	}
	for _, answer := range answers {
		own, pace := grouped(answer.Own), Seconds(answer.Seconds)
		if answer.Own == 0 {
			own = nothing
		}
		if answer.Seconds == 0 {
			pace = nothing
		}
		table.Row(degreesOf(answer), grouped(answer.Set.Context), grouped(answer.Tokens), own, pace, fmt.Sprintf("%.1f%%", 100*answer.Share))
	}
	table.Fit(0, narrowest, printer.width)
	printer.printf("%s\n", out.Block(table.String()))
	printer.printf("KV tokens are those of the whole cache. Own split is what the engine's own split of the layers would give.\n")
}

// Logged prints the figures of a start-up log next to those of the plan's fullest GPU.
func Logged(to io.Writer, plan *devicemap.Plan, fullest *devicemap.Predicted, log *paged.Log) {
	table := texttab.New("Figure", "Plan", "Log", "Difference").Compact()
	for at := 1; at < 4; at++ {
		table.Right(at)
	}
	bytes := func(name string, predicted, found int64) {
		if found >= 0 {
			table.Row(name, fmt.Sprint(costmodel.Bytes(predicted)), fmt.Sprint(costmodel.Bytes(found)), fmt.Sprintf("%+.2f GiB", float64(found-predicted)/(1<<30)))
		}
	}
	bytes("weights", fullest.ParamsBytes, log.Weights)
	bytes("buffers and graphs", fullest.WorkspaceBytes, max(log.Activation, 0)+max(log.Graphs, log.Estimate, 0))
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
