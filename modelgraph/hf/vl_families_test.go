package hf

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

func testGraph(t *testing.T, data []byte) *modelgraph.Graph {
	t.Helper()
	g := fixtures.Must(FromConfig("config.json", data))(t)
	return g
}

func testdataGraph(t *testing.T, name string) *modelgraph.Graph {
	t.Helper()
	data := fixtures.Must(os.ReadFile(filepath.Join("testdata", name)))(t)
	return testGraph(t, data)
}

func paramsUnder(g *modelgraph.Graph, prefix string) int64 {
	var n int64
	for i := range g.Layers {
		if strings.HasPrefix(g.Layers[i].Name, prefix) {
			for _, tensor := range g.Layers[i].Owned() {
				n += tensor.Numel
			}
		}
	}
	return n
}

// The counts are from OpenGVLab's modelling code (modeling_intern_vit.py, modeling_internlm2.py).
// InternViT-300M's 304.01M is from OpenGVLab's tables.
func TestInternVLCounts(t *testing.T) {
	big := testdataGraph(t, "internvl2_5-26b.json")
	small := testdataGraph(t, "internvl3-1b.json")
	text := testdataGraph(t, "internlm2_5-20b.json")
	for _, c := range []struct {
		what      string
		got, want int64
	}{
		{"InternVL2.5-26B", big.ParamCount(), 25_514_186_112},
		{"InternViT-6B", paramsUnder(big, "vision_model."), 5_536_496_000},
		{"mlp1 of 26B", paramsUnder(big, "mlp1."), 2*12800 + 12800*6144 + 6144 + 6144*6144 + 6144},
		{"InternViT-300M", paramsUnder(small, "vision_model."), 304_012_288},
		{"InternLM2.5-20B", text.ParamCount(), 19_861_149_696},
	} {
		if c.got != c.want {
			t.Errorf("%s has %d parameters, want %d", c.what, c.got, c.want)
		}
	}
	if big.MaxSeq != 32768 || big.DType != modelgraph.BF16 || big.Family != "internvl_chat" {
		t.Errorf("max seq %d, dtype %v, family %q", big.MaxSeq, big.DType, big.Family)
	}
}

// remoteNames are the tensors of InternVL2.5-26B's repository, first blocks only: the registration
// order of modeling_intern_vit.py, modeling_internlm2.py and modeling_internvl_chat.py.
var remoteNames = []string{
	"vision_model.embeddings.class_embedding [1,1,3200]",
	"vision_model.embeddings.position_embedding [1,1025,3200]",
	"vision_model.embeddings.patch_embedding.weight [3200,3,14,14]",
	"vision_model.embeddings.patch_embedding.bias [3200]",
	"vision_model.encoder.layers.0.ls1 [3200]",
	"vision_model.encoder.layers.0.ls2 [3200]",
	"vision_model.encoder.layers.0.attn.qkv.weight [9600,3200]",
	"vision_model.encoder.layers.0.attn.q_norm.weight [3200]",
	"vision_model.encoder.layers.0.attn.k_norm.weight [3200]",
	"vision_model.encoder.layers.0.attn.proj.weight [3200,3200]",
	"vision_model.encoder.layers.0.attn.proj.bias [3200]",
	"vision_model.encoder.layers.0.mlp.fc1.weight [12800,3200]",
	"vision_model.encoder.layers.0.mlp.fc1.bias [12800]",
	"vision_model.encoder.layers.0.mlp.fc2.weight [3200,12800]",
	"vision_model.encoder.layers.0.mlp.fc2.bias [3200]",
	"vision_model.encoder.layers.0.norm1.weight [3200]",
	"vision_model.encoder.layers.0.norm2.weight [3200]",
	"language_model.model.tok_embeddings.weight [92553,6144]",
	"language_model.model.layers.0.attention.wqkv.weight [8192,6144]",
	"language_model.model.layers.0.attention.wo.weight [6144,6144]",
	"language_model.model.layers.0.feed_forward.w1.weight [16384,6144]",
	"language_model.model.layers.0.feed_forward.w3.weight [16384,6144]",
	"language_model.model.layers.0.feed_forward.w2.weight [6144,16384]",
	"language_model.model.layers.0.attention_norm.weight [6144]",
	"language_model.model.layers.0.ffn_norm.weight [6144]",
	"language_model.model.norm.weight [6144]",
	"language_model.output.weight [92553,6144]",
	"mlp1.0.weight [12800]", "mlp1.0.bias [12800]",
	"mlp1.1.weight [6144,12800]", "mlp1.1.bias [6144]",
	"mlp1.3.weight [6144,6144]", "mlp1.3.bias [6144]",
}

func TestInternVLChatNames(t *testing.T) {
	g := testdataGraph(t, "internvl2_5-26b.json")
	later := func(s string) bool { return strings.Contains(s, ".layers.") && !strings.Contains(s+".", ".layers.0.") }
	params := func(l *modelgraph.Layer) []modelgraph.Tensor { return l.Params }
	got := slices.DeleteFunc(graphTensors(g, params), later)
	if d := cmp.Diff(remoteNames, got); d != "" {
		t.Errorf("tensors (-want +got):\n%s", d)
	}
	want := []string{
		"vision_model", "language_model.model.tok_embeddings", "language_model.model.layers.0",
		"language_model.model.norm", "language_model.output", "mlp1.0", "mlp1.1", "mlp1.3",
	}
	slices.Sort(want)
	if d := cmp.Diff(want, slices.DeleteFunc(unitKeys(g), later)); d != "" {
		t.Errorf("units (-want +got):\n%s", d)
	}
	if len(g.Ties) != 0 {
		t.Errorf("ties %v, want none", g.Ties)
	}
	// Each block of InternVL's copy caches 32768 × 128 cosines and sines.
	i, _ := layerNamed(g, "language_model.model.layers.0.attention")
	var n int64
	for j := range g.Layers[i].Buffers {
		n += g.Layers[i].Buffers[j].Bytes
	}
	if n != 2*2*32768*128+4*64 {
		t.Errorf("%d bytes of buffers in a block", n)
	}
}

// TestImageEdges checks that the first block of the language model reads the token embedding and
// the image, and the streams on the way there.
func TestImageEdges(t *testing.T) {
	for _, c := range []struct {
		config             string
		block, embed       string
		image              string
		towerTok, imageTok int64
		tower              string
	}{
		{
			`{"model_type":"internvl_chat","force_image_size":448,"vision_config":{"num_hidden_layers":2},"llm_config":{"architectures":["InternLM2ForCausalLM"],"num_hidden_layers":2}}`,
			"language_model.model.layers.0", "language_model.model.tok_embeddings", "mlp1.3",
			1025, 256, "vision_model.encoder.layers.1.attn",
		},
		{
			`{"model_type":"internvl","vision_config":{"num_hidden_layers":2},"text_config":{"num_hidden_layers":2}}`,
			"model.language_model.layers.0", "model.language_model.embed_tokens", "model.multi_modal_projector.linear_2",
			1025, 256, "model.vision_tower.encoder.layer.1.attention",
		},
		{
			`{"model_type":"qwen2_5_vl","num_hidden_layers":2,"vision_config":{"depth":2}}`,
			"model.language_model.layers.0", "model.language_model.embed_tokens", "model.visual.merger.mlp.2",
			5120, 1280, "model.visual.blocks.1.attn",
		},
		{
			`{"model_type":"paligemma","vision_config":{"num_hidden_layers":2,"patch_size":14},"text_config":{"num_hidden_layers":2}}`,
			"model.language_model.layers.0", "model.language_model.embed_tokens", "model.multi_modal_projector",
			256, 256, "model.vision_tower.encoder.layers.1.self_attn",
		},
		{
			`{"model_type":"gemma3","vision_config":{"num_hidden_layers":2,"patch_size":14,"image_size":896},"text_config":{"num_hidden_layers":2}}`,
			"model.language_model.layers.0", "model.language_model.embed_tokens", "model.multi_modal_projector.mm_input_projection_weight",
			4096, 256, "model.vision_tower.encoder.layers.1.self_attn",
		},
	} {
		g := testGraph(t, []byte(c.config))
		block, _ := unitNamed(g, c.block)
		var in []string
		for _, u := range g.Units[block].Inputs {
			in = append(in, g.Units[u].Name)
		}
		slices.Sort(in)
		want := []string{c.embed, c.image}
		slices.Sort(want)
		if d := cmp.Diff(want, in); d != "" {
			t.Errorf("%s: inputs of the first block (-want +got):\n%s", c.config, d)
		}
		image, _ := unitNamed(g, c.image)
		tower, _ := layerNamed(g, c.tower)
		for _, s := range []struct {
			at   int
			want int64
		}{{g.Units[image].First, c.imageTok}, {tower, c.towerTok}} {
			if got := g.Layers[s.at].Stream; got.Kind != modelgraph.Image || got.Tokens != s.want {
				t.Errorf("%s: %s works on %v, want %d tokens an image", c.config, g.Layers[s.at].Name, got, s.want)
			}
		}
		a, ok := g.Layers[tower].Op.(modelgraph.Attention)
		if !ok || !a.Bidirectional {
			t.Errorf("%s: %s is %+v, want attention both ways", c.config, c.tower, g.Layers[tower].Op)
		}
	}
}

// TestQwenWindows checks which blocks of the tower see the whole image.
func TestQwenWindows(t *testing.T) {
	g := testGraph(t, []byte(`{"model_type":"qwen2_5_vl","num_hidden_layers":1,"vision_config":{"hidden_size":1280,"out_hidden_size":2048}}`))
	var full []int64
	for b := range int64(32) {
		i, _ := layerNamed(g, indexed("model.visual.blocks", b)+".attn")
		switch a, _ := g.Layers[i].Op.(modelgraph.Attention); a.Window {
		case 0:
			full = append(full, b)
		case 64: // 8 × 8 patches of 14 pixels in 112 × 112
		default:
			t.Errorf("block %d has a window of %d patches", b, a.Window)
		}
	}
	if d := cmp.Diff([]int64{7, 15, 23, 31}, full); d != "" {
		t.Errorf("blocks without a window (-want +got):\n%s", d)
	}
	// Qwen2_5_VisionTransformerPretrainedModel (transformers 5.17), counted on the meta device.
	if n := paramsUnder(g, "model.visual."); n != 668_684_288 {
		t.Errorf("the tower has %d parameters", n)
	}
	if n := paramsUnder(g, "model.visual.blocks.0."); n != 19_702_200 {
		t.Errorf("a block has %d parameters", n)
	}
}

// TestSelectLayer checks that the projector reads the state asked for.
func TestSelectLayer(t *testing.T) {
	for layer, want := range map[string]string{
		"-1": "vision_model.encoder.layers.2.mlp", "-4": "vision_model.embeddings.patch_embedding",
		"1": "vision_model.encoder.layers.0.mlp",
	} {
		g := testGraph(t, []byte(`{"model_type":"internvl_chat","select_layer":`+layer+`,"vision_config":{"num_hidden_layers":3},"llm_config":{"architectures":["LlamaForCausalLM"],"num_hidden_layers":1}}`))
		i, _ := layerNamed(g, "mlp1.0")
		if got := g.Layers[i].Inputs; len(got) != 1 || got[0] != want {
			t.Errorf("select_layer %s: mlp1.0 reads %v, want %s", layer, got, want)
		}
	}
}

// TestVisionFaults gives each family sizes that make no model.
func TestVisionFaults(t *testing.T) {
	vision := map[string]string{"internvl_chat": `,"llm_config":{"architectures":["LlamaForCausalLM"]}`}
	for _, c := range []struct{ family, fields, place string }{
		{"qwen2_5_vl", `"vision_config":{"num_heads":0}`, "vision_config.num_heads"},
		{"qwen2_5_vl", `"vision_config":{"num_heads":3}`, "vision_config.num_heads"},
		{"qwen2_5_vl", `"vision_config":{"patch_size":0}`, "vision_config.patch_size"},
		{"qwen2_5_vl", `"vision_config":{"patch_size":1099511627776}`, "vision_config.patch_size"},
		{"qwen2_5_vl", `"vision_config":{"spatial_merge_size":0}`, "vision_config.spatial_merge_size"},
		{"qwen2_5_vl", `"vision_config":{"spatial_merge_size":65536,"hidden_size":1099511627776}`, "vision_config.spatial_merge_size"},
		{"qwen2_5_vl", `"vision_config":{"window_size":27}`, "vision_config.window_size"},
		{"qwen2_5_vl", `"vision_config":{"depth":100001}`, "vision_config.depth"},
		{"qwen2_5_vl", `"text_config":{"num_attention_heads":0}`, "text_config.num_attention_heads"},
		{"qwen2_5_vl", `"vision_config":7`, "vision_config"},
		{"internvl", `"vision_config":{"image_size":13}`, "vision_config.image_size"},
		{"internvl", `"vision_config":{"image_size":[]}`, "vision_config.image_size"},
		{"internvl", `"vision_config":{"image_size":[448,448,3]}`, "vision_config.image_size"},
		{"internvl", `"vision_config":{"patch_size":[14,0]}`, "vision_config.patch_size"},
		{"internvl", `"vision_config":{"norm_type":"batch"}`, "vision_config.norm_type"},
		{"internvl", `"downsample_ratio":0`, "downsample_ratio"},
		{"internvl", `"downsample_ratio":1e-300`, "downsample_ratio"},
		{"internvl", `"downsample_ratio":1.5`, "downsample_ratio"},
		{"internvl", `"vision_feature_layer":-26`, "vision_feature_layer"},
		{"internvl", `"text_config":{"model_type":"internlm2"}`, "text_config.model_type"},
		{"internvl_chat", `"force_image_size":13`, "force_image_size"},
		{"internvl_chat", `"force_image_size":1e9`, "force_image_size"},
		{"internvl_chat", `"vision_config":{"num_attention_heads":0}`, "vision_config.num_attention_heads"},
		{"internvl_chat", `"select_layer":0.5`, "select_layer"},
		{"internvl_chat", `"llm_config":{"architectures":["BertModel"]}`, "llm_config.architectures[0]"},
		{"internlm2", `"num_key_value_heads":0`, "num_key_value_heads"},
		{"internlm2", `"num_attention_heads":33`, "num_attention_heads"},
		{"paligemma", `"vision_config":{"patch_size":0}`, "vision_config.patch_size"},
		{"paligemma", `"vision_config":{"image_size":8}`, "vision_config.image_size"},
		{"paligemma", `"projection_dim":0`, "projection_dim"},
		{"gemma3", `"mm_tokens_per_image":0`, "mm_tokens_per_image"},
		{"gemma3", `"vision_config":{"num_attention_heads":0}`, "vision_config.num_attention_heads"},
	} {
		text := `{"model_type":"` + c.family + `",` + c.fields
		if !strings.Contains(c.fields, "llm_config") {
			text += vision[c.family]
		}
		text += "}"
		if !json.Valid([]byte(text)) {
			t.Fatalf("%s is not JSON", text)
		}
		_, err := FromConfig("config.json", []byte(text))
		var syntax *modelgraph.SyntaxError
		if !errors.As(err, &syntax) || syntax.Place != c.place {
			t.Errorf("%s: %v, want a fault of %s", text, err, c.place)
		}
	}
}

// TestVisionMutants sets every number of a small config, one at a time, to sizes that fit nothing:
// a graph or a fault, never a panic.
func TestVisionMutants(t *testing.T) {
	for _, file := range []string{"qwen2_5_vl", "internvl", "paligemma", "gemma3"} {
		for _, c := range readOracle(t, "../../fixtures/oracle/"+file+".json.gz") {
			if strings.HasSuffix(c.Case, "/small") || strings.HasSuffix(c.Case, "/vision-head") {
				mutate(t, c.Config)
			}
		}
	}
	chat := fixtures.Must(os.ReadFile("testdata/internvl2_5-26b.json"))(t)
	mutate(t, chat)
}

func mutate(t *testing.T, data []byte) {
	t.Helper()
	var top map[string]any
	if err := json.Unmarshal(data, &top); err != nil {
		t.Fatal(err)
	}
	objects := []map[string]any{top}
	for _, name := range []string{"text_config", "vision_config", "llm_config"} {
		if m, ok := top[name].(map[string]any); ok {
			objects = append(objects, m)
		}
	}
	for _, m := range objects {
		for name, old := range m {
			if _, object := old.(map[string]any); object {
				continue
			}
			for _, v := range []any{0, 1, 3, 65536, 1 << 40, -1, 0.25, nil, "x", []any{}, []any{0, 1 << 40}} {
				if v == 65536 && (strings.HasSuffix(name, "_layers") || name == "depth") {
					continue // a model, if a deep one: seconds to build
				}
				m[name] = v
				text := fixtures.Must(json.Marshal(top))(t)
				_, _ = FromConfig("config.json", text)
			}
			m[name] = old
		}
	}
}
