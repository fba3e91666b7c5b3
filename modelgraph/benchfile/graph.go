package benchfile

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"
)

// layers turns nodes and the edges between them into a graph, in an order in which they can run.
// The order is as close to the given one as possible.
func layers(file string, nodes []modelgraph.Layer, edges [][2]int) (*modelgraph.Graph, error) {
	directed := simple.NewDirectedGraph()
	inputs := make([][]int, len(nodes))
	for i := range nodes {
		directed.AddNode(simple.Node(i))
	}
	for _, edge := range edges {
		if !directed.HasEdgeFromTo(int64(edge[0]), int64(edge[1])) {
			directed.SetEdge(directed.NewEdge(simple.Node(edge[0]), simple.Node(edge[1])))
			inputs[edge[1]] = append(inputs[edge[1]], edge[0])
		}
	}
	order, err := topo.SortStabilized(directed, nil)
	var cyclic topo.Unorderable
	if errors.As(err, &cyclic) { // the graph's own check names the cycle
		order = order[:0]
		for i := range nodes {
			order = append(order, simple.Node(i))
		}
	} else if err != nil {
		return nil, err
	}
	nameLayers(nodes)
	sorted := make([]modelgraph.Layer, 0, len(nodes))
	for _, node := range order {
		layer := nodes[node.ID()]
		layer.Op, layer.Inputs = modelgraph.Opaque{}, []string{} // none, unless some are added
		for _, from := range inputs[node.ID()] {
			layer.Inputs = append(layer.Inputs, nodes[from].Name)
		}
		sorted = append(sorted, layer)
	}
	base := file[strings.LastIndexAny(file, `/\`)+1:]
	graph, err := modelgraph.New(strings.TrimSuffix(strings.TrimSuffix(base, ".json"), ".graph.txt"), sorted, nil)
	var fault *modelgraph.SyntaxError
	if errors.As(err, &fault) {
		return nil, &modelgraph.SyntaxError{File: file, Place: fault.Place, Msg: fault.Msg}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	graph.Source = file
	return graph, nil
}

// nameLayers makes the names of layers unique module paths of one part.
func nameLayers(nodes []modelgraph.Layer) {
	times := make(map[string]int)
	for i := range nodes {
		nodes[i].Name = strings.ReplaceAll(nodes[i].Name, ".", "_")
		times[nodes[i].Name]++
	}
	taken := make(map[string]bool)
	for i := range nodes {
		n := nodes[i].Name
		for k := i; times[n] > 1 || taken[n]; k++ {
			n = fmt.Sprintf("%s#%d", nodes[i].Name, k)
		}
		nodes[i].Name = n
		taken[n] = true
	}
}

// wholeBytes rounds a file's size to whole bytes.
func wholeBytes(value float64) int64 { return int64(math.Round(value)) }
