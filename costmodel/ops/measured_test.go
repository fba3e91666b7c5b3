package ops_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// families are the model types of measure_layers.py.
var families = map[string]string{
	"llama-3.1-8b": "llama", "qwen2.5-3b": "qwen2", "gemma-2b": "gemma", "qwen3-8b": "qwen3", "mixtral-8x7b": "mixtral", "gpt2-xl": "gpt2",
}

// layerRow is a row of layers.json: models of one and of three layers on one
// GPU, with bytes above the weights.
type layerRow struct {
	Model      string
	Batch, Seq int64
	Mode       string
	Saved      float64 `json:"saved_per_token_layer"`
	LossSaved  int64   `json:"loss_saved"`
	LossFwd    int64   `json:"loss_fwd_peak"`
	LossBwd    int64   `json:"loss_bwd_peak"`
	One, Three struct {
		Saved int64
		Fwd   int64 `json:"fwd_peak"`
		Bwd   int64 `json:"bwd_peak_over_fwd_end"`
		Grads int64
	}
	Config map[string]any
}

func (r *layerRow) name() string {
	return fmt.Sprintf("%s/%dx%d/%s", r.Model, r.Batch, r.Seq, r.Mode)
}

func layerRows(t *testing.T) []layerRow {
	t.Helper()
	data, err := os.ReadFile(cmp.Or(os.Getenv("ROWS"), "../../fixtures/measured/layers.json"))
	if err != nil {
		t.Fatal(err)
	}
	var f struct{ Rows []layerRow }
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	return f.Rows
}

// model is the row's model with n layers.
func (r *layerRow) model(t *testing.T, n int) *modelgraph.Graph {
	t.Helper()
	config := map[string]any{"model_type": families[r.Model]}
	for k, v := range r.Config {
		config[k] = v
	}
	layers := "num_hidden_layers"
	if r.Model == "gpt2-xl" {
		layers = "n_layer"
	}
	config[layers] = n
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	g, err := hf.FromConfig("config.json", data)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// workload is one GPU without an engine around the model: every layer shares
// the rotary's cosines and sines.
func (r *layerRow) workload() costmodel.Workload {
	w := costmodel.Workload{
		Mode: costmodel.Train, Runtime: costmodel.Torch, Batch: r.Batch, MicroBatches: 1, Seq: r.Seq, TargetSeq: r.Seq,
		Precision: costmodel.BF16True, Optimizer: costmodel.SGD,
	}
	switch r.Mode {
	case "amp":
		w.Precision = costmodel.BF16Mixed
	case "ckpt":
		w.Recompute = costmodel.RecomputeFull
	}
	return w
}

func (r *layerRow) table(t *testing.T, layers int) (*modelgraph.Graph, *costmodel.Table) {
	t.Helper()
	g := r.model(t, layers)
	table, err := estimate.Table(g, r.workload())
	if err != nil {
		t.Fatal(err)
	}
	return g, table
}

func TestX(t *testing.T) {
	for _, r := range layerRows(t) {
		for _, n := range []int{1, 3} {
			m := r.One
			if n == 3 {
				m = r.Three
			}
			g, table := r.table(t, n)
			last := len(table.Units) - 1
			run := costmodel.NewChain(table.Units).Run(0, last)
			off := func(got, want int64) string {
				return fmt.Sprintf("%+.3f%% (%+.2f MiB)", 100*(float64(got)/float64(want)-1), float64(got-want)/(1<<20))
			}
			fmt.Printf("%-28s %d body saved %s fwd %s bwd %s grads %s\n", r.name(), n, off(run.Saved, m.Saved), off(run.Forward, m.Fwd), off(run.Backward, m.Saved+m.Bwd), off(run.Grads, m.Grads))
			if n > 1 {
				continue
			}
			run = costmodel.NewChain(table.Units).Run(0, last+1)
			out := int64(0)
			for i := range g.Layers {
				if h, ok := g.Layers[i].Op.(modelgraph.Head); ok {
					out = 2 * r.Batch * r.Seq * h.Vocab
				}
			}
			fmt.Printf("%-28s loss saved %s fwd %s bwd %s\n", r.name(), off(run.Saved+out, r.LossSaved), off(run.Forward, r.LossFwd), off(run.Backward+out, r.LossBwd))
		}
	}
	_ = math.Abs
}
