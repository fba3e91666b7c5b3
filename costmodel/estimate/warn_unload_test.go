package estimate

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestUnload: 64 bf16 matrices of 8192² over 4 GPUs after a step and `del model`. The shards and
// their gradients stay, with two cuBLAS workspaces of 32 MiB (main and autograd thread), to the MiB
// as in the row fsdp_unload of measured/seeds.json.
func TestUnload(t *testing.T) {
	g := &modelgraph.Graph{}
	for range 64 {
		w := fixtures.Must(modelgraph.NewTensor("weight", modelgraph.BF16, 8192, 8192))(t)
		g.Layers = append(g.Layers, modelgraph.Layer{Params: []modelgraph.Tensor{w}})
	}
	w := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.FSDP, Runtime: value.Torch, World: 4, ShardDegree: 4, Precision: costmodel.BF16True}
	model := fixtures.Must(layers.New(g, w, layers.Rules{Compute: w.Precision, Cut: true}))(t)
	shards, grads := leftAfterUnload(model)
	const workspaces = 2 * 32 << 20
	data := fixtures.Must(os.ReadFile("../../fixtures/measured/seeds.json"))(t)
	var rows struct {
		Unload string `json:"fsdp_unload"`
	}
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	if got := (shards + grads + workspaces) >> 20; got != 4160 || strings.Count(rows.Unload, "alloc MiB 4160") != 2 || !strings.HasSuffix(rows.Unload, "alloc 4160") {
		t.Errorf("%d MiB stay, measured: %s", got, rows.Unload)
	}
	if said := afterUnload(nil, model); len(said) != 1 || !strings.Contains(said[0].String(), "4.00 GiB stay") {
		t.Errorf("%q", said)
	}
}
