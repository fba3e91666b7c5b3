package stages

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/planner/internal/solve/lattice"
)

// web is the problem's graph with what its edges cost.
type web struct {
	*lattice.Graph
	out, in [][]arc
	// transfers: some edge costs time.
	transfers bool
}

type arc struct {
	node          int
	send, receive float64
}

func newWeb(problem *Problem) (*web, error) {
	network := &web{out: make([][]arc, len(problem.Nodes)), in: make([][]arc, len(problem.Nodes))}
	ends := make([][2]int, len(problem.Edges))
	for i, edge := range problem.Edges {
		ends[i] = [2]int{edge.From, edge.To}
		network.out[edge.From] = append(network.out[edge.From], arc{edge.To, edge.Send, edge.Receive})
		network.in[edge.To] = append(network.in[edge.To], arc{edge.From, edge.Send, edge.Receive})
		network.transfers = network.transfers || edge.Send+edge.Receive > 0
	}
	var circle []int
	var err error
	if network.Graph, circle, err = lattice.New(len(problem.Nodes), ends); err != nil {
		return nil, err
	}
	if circle != nil {
		return nil, problem.cycle(circle)
	}
	return network, nil
}

// cycle is the error that names one circle.
func (problem *Problem) cycle(circle []int) error {
	var names []string
	for _, node := range append(circle, circle[0]) {
		names = append(names, fmt.Sprintf("%q", problem.Nodes[node].Name))
	}
	return fmt.Errorf("nodes read each other in a circle: %s", strings.Join(names, " → "))
}
