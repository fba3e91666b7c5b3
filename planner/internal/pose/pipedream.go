package pose

import (
	"math"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/solve/stages"
)

// PipeDream is the problem of cutting a profile into PipeDream's straight
// pipeline: the slowest stage's compute, forward and backward, in seconds,
// without transfers and without a bound on memory. As there, the graph's inputs
// ("Input0" and so on) cost nothing: no planner has a say in where they are
// (optimizer_graph_hierarchical.py, main).
func PipeDream(file *benchfile.PipeDream, devices int) *stages.Problem {
	problem := &stages.Problem{Devices: devices, Capacity: math.Inf(1)}
	reads := make([]bool, len(file.Nodes))
	for _, edge := range file.Edges {
		reads[edge[1]] = true
	}
	for i := range file.Nodes {
		node := &file.Nodes[i]
		choice := stages.Choice{Time: (node.Forward + node.Backward) / 1000, InFlight: node.Activation, Fixed: node.Parameters}
		if !reads[i] && strings.HasPrefix(node.Description, "Input") {
			choice = stages.Choice{}
		}
		problem.Nodes = append(problem.Nodes, stages.Node{Name: node.ID, Choices: []stages.Choice{choice}})
	}
	for _, edge := range file.Edges {
		problem.Edges = append(problem.Edges, stages.Edge{From: edge[0], To: edge[1]})
	}
	return problem
}
