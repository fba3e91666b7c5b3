package estimate_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// TestTiedTwice: under torchtitan's tensor parallelism a tied table is two parameters, of the embedding
// and of the head. FSDP2 copies the rank's shards of both and of the norm in bf16 before gathering.
func TestTiedTwice(t *testing.T) {
	const vocab, dim = 4096, 256
	graph := fixtures.Must(hf.FromConfig("config.json", []byte(`{"model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 4096, "tie_word_embeddings": true}`)))(t)
	for tp, want := range map[int64]int64{1: 2 * (vocab*dim + dim) / 2, 2: 2 * (2*(vocab/2)*dim + dim) / 2, 4: 2 * (2*(vocab/4)*dim + dim) / 2} {
		workload, err := estimate.Resolve(graph, costmodel.Workload{
			Mode: costmodel.Train, Runtime: "torchtitan", Strategy: costmodel.Pipeline, Precision: costmodel.BF16Mixed,
			Batch: 2, Seq: 512, TP: costmodel.Degree(tp), DP: 2, PP: 1, World: 2 * tp,
		})
		if err != nil {
			t.Fatal(err)
		}
		table := fixtures.Must(estimate.Table(graph, workload))(t)
		var copies []int64
		for i := range table.Groups {
			copies = append(copies, table.Groups[i].CopyIn)
		}
		if copies[0] != want {
			t.Errorf("tp %d: the group of the table copies %d B, want %d (%v)", tp, copies[0], want, copies)
		}
	}
}
