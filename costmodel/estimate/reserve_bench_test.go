package estimate_test

import (
	"os"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

func BenchmarkMarks(b *testing.B) {
	data, err := os.ReadFile("../../fixtures/models/llama-3.1-405b/config.json")
	if err != nil {
		b.Fatal(err)
	}
	graph, err := hf.FromConfig("config.json", data)
	if err != nil {
		b.Fatal(err)
	}
	for _, strategy := range []costmodel.Strategy{costmodel.Zero2, costmodel.Zero3, costmodel.FSDP} {
		b.Run(string(strategy), func(b *testing.B) {
			workload, err := estimate.Resolve(graph, costmodel.Workload{Mode: costmodel.Train, Strategy: strategy, World: 64, Batch: 1, Seq: 4096})
			if err != nil {
				b.Fatal(err)
			}
			for range b.N {
				table, err := estimate.Table(graph, workload)
				if err != nil {
					b.Fatal(err)
				}
				if table.Marks(nil, true) == nil {
					b.Fatal("not followed")
				}
			}
		})
	}
}
