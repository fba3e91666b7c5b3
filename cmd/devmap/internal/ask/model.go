package ask

import (
	"fmt"
	"os"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// ReadModel reads the MODEL argument.
func ReadModel(arg string) (*modelgraph.Graph, error) {
	return load.Model(arg, load.Options{BuiltIn: fixtures.Models(), Env: os.Getenv})
}

// Costs resolves the workload for a model and works out its table.
func Costs(graph *modelgraph.Graph, workload costmodel.Workload) (*costmodel.Table, error) {
	workload, err := estimate.Resolve(graph, workload)
	if err != nil {
		return nil, err
	}
	table, err := estimate.Table(graph, workload)
	if err != nil {
		return nil, fmt.Errorf("counting %q: %w", graph.Name, err)
	}
	return table, nil
}
