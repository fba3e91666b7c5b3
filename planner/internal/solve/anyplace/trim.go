package anyplace

import "github.com/devmap-dev/devmap/planner/internal/solve/graph"

// trimmed leaves out devices beyond one for each node: a file may ask for many
// thousand, and tables have a row for each.
func trimmed(problem *graph.Problem) *graph.Problem {
	smaller := &graph.Problem{Nodes: problem.Nodes, Edges: problem.Edges}
	for _, kind := range problem.Kinds {
		kind.Count = min(kind.Count, len(problem.Nodes))
		smaller.Kinds = append(smaller.Kinds, kind)
	}
	return smaller
}

// renumber turns devices of the trimmed problem into those of the whole one.
func renumber(problem, smaller *graph.Problem, place []int) {
	for node, device := range place {
		for kind := range smaller.KindOf(device) {
			place[node] += problem.Kinds[kind].Count - smaller.Kinds[kind].Count
		}
	}
}
