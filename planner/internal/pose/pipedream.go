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
func PipeDream(w *benchfile.PipeDream, devices int) *stages.Problem {
	p := &stages.Problem{Devices: devices, Capacity: math.Inf(1)}
	reads := make([]bool, len(w.Nodes))
	for _, e := range w.Edges {
		reads[e[1]] = true
	}
	for i := range w.Nodes {
		n := &w.Nodes[i]
		c := stages.Choice{Time: (n.Forward + n.Backward) / 1000, InFlight: n.Activation, Fixed: n.Parameters}
		if !reads[i] && strings.HasPrefix(n.Description, "Input") {
			c = stages.Choice{}
		}
		p.Nodes = append(p.Nodes, stages.Node{Name: n.ID, Choices: []stages.Choice{c}})
	}
	for _, e := range w.Edges {
		p.Edges = append(p.Edges, stages.Edge{From: e[0], To: e[1]})
	}
	return p
}
