package anyplace

import "github.com/devmap-dev/devmap/planner/internal/solve/graph"

// trimmed leaves out devices beyond one for each node: a file may ask for many
// thousand, and tables have a row for each.
func trimmed(p *graph.Problem) *graph.Problem {
	q := &graph.Problem{Nodes: p.Nodes, Edges: p.Edges}
	for _, k := range p.Kinds {
		k.Count = min(k.Count, len(p.Nodes))
		q.Kinds = append(q.Kinds, k)
	}
	return q
}

// renumber turns devices of the trimmed problem q into those of p.
func renumber(p, q *graph.Problem, place []int) {
	for v, d := range place {
		for k := range q.KindOf(d) {
			place[v] += p.Kinds[k].Count - q.Kinds[k].Count
		}
	}
}
