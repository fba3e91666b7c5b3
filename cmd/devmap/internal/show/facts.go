package show

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/serve"
)

// Facts returns a plan's workload, strategy and degrees in the words of the header: pairs of a name and a
// text. graph may be nil: the lengths are then not checked against the model.
func Facts(plan *devicemap.Plan, graph *modelgraph.Graph) [][2]string {
	if len(plan.Pipeline) > 0 {
		return [][2]string{{"Runtime", plan.Workload.Runtime}}
	}
	printer := &Printer{graph: graph, work: plan.Workload}
	facts := [][2]string{{"Workload", printer.doing()}, {"GPUs", gpusOf(&plan.Topology)}, {"Strategy", printer.spread()}}
	if all, _ := degreesSet(&plan.Workload); all != "" {
		facts = append(facts, [2]string{"Degrees", strings.TrimPrefix(all, ", ")})
	}
	if text := formsOf(&plan.Workload, plan.Stages); text != "" {
		facts = append(facts, [2]string{"Stages", text})
	}
	if plan.KVTokens > 0 {
		facts = append(facts, [2]string{"KV tokens", grouped(plan.KVTokens)})
	}
	return facts
}

// PipelineFacts is [Facts] of a diffusion pipeline's solution.
func PipelineFacts(solution *planner.Solution, runtime string) [][2]string {
	work := &solution.Pipeline.Workload
	return [][2]string{{"Workload", asked(work)}, {"Strategy", strings.TrimSpace(strings.TrimPrefix(degrees(*work), ", ") + " (" + runtime + ")")}}
}

// ServedFacts are the lines of [Served].
func ServedFacts(graph *modelgraph.Graph, work costmodel.Workload, question *serve.Question, answer *serve.Answer) []string {
	var text strings.Builder
	Served(New(&text, graph, work), question, answer)
	return strings.Split(strings.TrimSpace(text.String()), "\n")
}

// Overhead names what a plan counts for a GPU outside the allocator, as the tables do.
func Overhead(mode costmodel.Mode) string {
	if mode == costmodel.Serve {
		return "CUDA context and the margin"
	}
	return "CUDA context"
}

// degreesSet returns all degrees of a workload, each after a comma, and whether one is automatic.
func degreesSet(workload *costmodel.Workload) (degrees string, open bool) {
	for _, field := range costmodel.Fields() {
		if text := field.Text(workload); text != "" && slices.Contains([]string{"dp", "tp", "cp", "pp", "ep"}, field.Name) {
			degrees += fmt.Sprintf(", %s %s", field.Name, text)
			open = open || text == "auto"
		}
	}
	return degrees, open
}
