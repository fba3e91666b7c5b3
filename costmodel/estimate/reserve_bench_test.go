package estimate_test

import (
	"os"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

func BenchmarkMarks(b *testing.B) {
	data := fixtures.Must(os.ReadFile("../../fixtures/models/llama-3.1-405b/config.json"))(b)
	graph := fixtures.Must(hf.FromConfig("config.json", data))(b)
	for _, strategy := range []costmodel.Strategy{costmodel.Zero2, costmodel.Zero3, costmodel.FSDP} {
		b.Run(string(strategy), func(b *testing.B) {
			workload := fixtures.Must(estimate.Resolve(graph, costmodel.Workload{Mode: costmodel.Train, Strategy: strategy, World: 64, Batch: 1, Seq: 4096}))(b)
			for range b.N {
				table := fixtures.Must(estimate.Table(graph, workload))(b)
				if table.Marks(nil, true) == nil {
					b.Fatal("not followed")
				}
			}
		})
	}
}
