package hf

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// The two configs are unchanged from NVIDIA-NeMo/NeMo,
// nemo/collections/llm/gpt/model/llama_nemotron_config.py (commit 8cfedd7, Apache-2.0).
const (
	nemotronUltra = "nemotron-ultra-253b"
	nemotronSuper = "nemotron-super-49b"
)

// TestNemotronTotals: the published parameter counts.
func TestNemotronTotals(t *testing.T) {
	for name, want := range map[string]int64{nemotronUltra: 253_401_268_224, nemotronSuper: 49_867_145_216} {
		if got := nemotronGraph(t, name).ParamCount(); got != want {
			t.Errorf("%s: %d parameters, published are %d", name, got, want)
		}
	}
}

func TestNemotronUltra(t *testing.T) {
	g := nemotronGraph(t, nemotronUltra)
	// 64 layers have attention, each with its frequencies.
	if want := int64(65 * 64); bufferCount(g) != want {
		t.Errorf("%d buffer elements, want %d", bufferCount(g), want)
	}
	if g.Class != "DeciLMForCausalLM" || g.MaxSeq != 131072 {
		t.Errorf("class %s, longest sequence %d", g.Class, g.MaxSeq)
	}
	blocks := map[int][]string{
		0: {
			"input_layernorm.weight [16384]",
			"self_attn.q_proj.weight [16384 16384]", "self_attn.k_proj.weight [1024 16384]",
			"self_attn.v_proj.weight [1024 16384]", "self_attn.o_proj.weight [16384 16384]",
			"post_attention_layernorm.weight [16384]",
			"mlp.gate_proj.weight [5376 16384]", "mlp.up_proj.weight [5376 16384]", "mlp.down_proj.weight [16384 5376]",
		},
		9: nil,
		134: {
			"post_attention_layernorm.weight [16384]",
			"mlp.gate_proj.weight [425984 16384]", "mlp.up_proj.weight [425984 16384]", "mlp.down_proj.weight [16384 425984]",
		},
	}
	for i, want := range blocks {
		if d := cmp.Diff(want, unitTensors(t, g, fmt.Sprintf("model.layers.%d", i))); d != "" {
			t.Errorf("layer %d (-want +got):\n%s", i, d)
		}
	}
}

// TestNemotronUltraUnits: every layer is a unit that a device map names, the empty ones too, and
// the hidden state passes them by.
func TestNemotronUltraUnits(t *testing.T) {
	g := nemotronGraph(t, nemotronUltra)
	keys := unitKeys(g)
	for i := range 162 {
		if key := fmt.Sprintf("model.layers.%d", i); !slices.Contains(keys, key) {
			t.Errorf("no unit has the key %s", key)
		}
	}
	if want := 162 + 4; len(g.Units) != want {
		t.Errorf("%d units, want %d", len(g.Units), want)
	}
	for name, want := range map[string][]string{
		"model.layers.9":                  {"model.layers.8.mlp"},
		"model.layers.13.input_layernorm": {"model.layers.8.mlp"},
		"model.layers.134.mlp":            {"model.layers.134.post_attention_layernorm", "model.layers.125.mlp"},
	} {
		i, ok := layerNamed(g, name)
		if !ok {
			t.Errorf("no layer %s", name)
			continue
		}
		if d := cmp.Diff(want, g.Layers[i].Inputs); d != "" {
			t.Errorf("inputs of %s (-want +got):\n%s", name, d)
		}
	}
}

func TestNemotronBlocks(t *testing.T) {
	for _, tt := range []struct {
		name, block string
		want        []string
	}{
		{"linear", `{"attention": {"replace_with_linear": true}, "ffn": {"replace_with_linear": true}}`, []string{
			"input_layernorm.weight [96]", "self_attn.linear_attn.weight [96 96]",
			"post_attention_layernorm.weight [96]", "mlp.linear_mlp.weight [96 96]",
		}},
		{"attention alone", `{"attention": {"n_heads_in_group": 2}, "ffn": {"no_op": true, "ffn_mult": null}}`, []string{
			"input_layernorm.weight [96]", "self_attn.q_proj.weight [96 96]", "self_attn.k_proj.weight [48 96]",
			"self_attn.v_proj.weight [48 96]", "self_attn.o_proj.weight [96 96]",
		}},
		{"given sizes", `{"attention": {"num_key_value_heads": 1, "no_op": false}, "ffn": {"intermediate_size": 80}}`, []string{
			"input_layernorm.weight [96]", "self_attn.q_proj.weight [96 96]", "self_attn.k_proj.weight [24 96]",
			"self_attn.v_proj.weight [24 96]", "self_attn.o_proj.weight [96 96]", "post_attention_layernorm.weight [96]",
			"mlp.gate_proj.weight [80 96]", "mlp.up_proj.weight [80 96]", "mlp.down_proj.weight [96 80]",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := fixtures.Must(FromConfig("config.json", []byte(nemotronConfig(tt.block))))(t)
			if d := cmp.Diff(tt.want, unitTensors(t, g, "model.layers.0")); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func nemotronConfig(block string) string {
	return `{"model_type": "nemotron-nas", "hidden_size": 96, "num_attention_heads": 4, "num_hidden_layers": 1,
		"vocab_size": 256, "intermediate_size": null, "num_key_value_heads": null, "block_configs": [` + block + `]}`
}

func nemotronGraph(t *testing.T, name string) *modelgraph.Graph {
	t.Helper()
	f := fixtures.Must(os.Open("testdata/" + name + ".json.gz"))(t)
	defer f.Close()
	z := fixtures.Must(gzip.NewReader(f))(t)
	data := fixtures.Must(io.ReadAll(z))(t)
	g := fixtures.Must(FromConfig("config.json", data))(t)
	return g
}

// unitTensors are the parameters of a unit, named inside it.
func unitTensors(t *testing.T, g *modelgraph.Graph, unit string) []string {
	t.Helper()
	u, ok := unitNamed(g, unit)
	if !ok {
		t.Fatalf("no unit %s", unit)
	}
	var out []string
	for _, l := range g.Layers[g.Units[u].First:g.Units[u].End] {
		for _, p := range l.Params {
			name := strings.TrimPrefix(modelgraph.FullName(l.Name, p.Name), unit+".")
			out = append(out, fmt.Sprint(name, " ", p.Shape))
		}
	}
	return out
}
