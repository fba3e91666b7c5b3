package hf

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// TestStoredType: a tensor has the file's type unless the framework loads it in another
// (modeling_utils.py, _keep_in_fp32_modules): T5's wo in an fp16 model, DeepSeek-V3's router
// correction. Quantised types stay.
func TestStoredType(t *testing.T) {
	const wo, wi = "encoder.block.0.layer.1.DenseReluDense.wo.weight", "encoder.block.0.layer.1.DenseReluDense.wi.weight"
	const bias, gate = "model.layers.1.mlp.gate.e_score_correction_bias", "model.layers.1.mlp.gate.weight"
	const q = "model.layers.0.self_attn.q_proj.weight"
	configs := oracleConfigs(t)
	for _, c := range []struct {
		oracle       string
		dtype        string // of the config
		stored       modelgraph.DType
		name         string
		want         modelgraph.DType
		configDType  modelgraph.DType
		otherInModel string
		other        modelgraph.DType
	}{
		{"t5/small", "float16", modelgraph.F16, wo, modelgraph.F32, modelgraph.F16, wi, modelgraph.F16},
		{"t5/small", "float32", modelgraph.F32, wo, modelgraph.F32, modelgraph.F32, wi, modelgraph.F32},
		{"t5/small", "float16", modelgraph.BF16, wo, modelgraph.F32, modelgraph.F16, wi, modelgraph.BF16},
		{"t5/small", "float16", float8Type, wo, float8Type, modelgraph.F16, wi, float8Type},
		{"deepseek_v3/small", "bfloat16", modelgraph.BF16, bias, modelgraph.F32, modelgraph.BF16, gate, modelgraph.F32},
		{"llama/small", "bfloat16", modelgraph.F32, q, modelgraph.F32, modelgraph.BF16, q, modelgraph.F32},
		{"llama/small", "float32", modelgraph.BF16, q, modelgraph.BF16, modelgraph.F32, q, modelgraph.BF16},
	} {
		var config map[string]any
		if err := json.Unmarshal(configs[c.oracle], &config); err != nil {
			t.Fatal(c.oracle, err)
		}
		config["dtype"] = c.dtype
		data, _ := json.Marshal(config)
		g, err := FromConfig("config.json", data)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		write(t, filepath.Join(dir, ConfigName), data)
		writeFile(t, filepath.Join(dir, "model.safetensors"), checkpointOf(g, c.stored))
		if g, err = FromCheckpoint(dir); err != nil {
			t.Fatal(err)
		}
		if got := tensorOf(t, g, c.name); got.DType != c.want || got.Parts[0].DType != c.stored {
			t.Errorf("%s %s stored as %v: %s is %v of parts in %v, want %v", c.oracle, c.dtype, c.stored, c.name, got.DType, got.Parts[0].DType, c.want)
		}
		if got := tensorOf(t, g, c.otherInModel); got.DType != c.other || g.DType != c.configDType {
			t.Errorf("%s %s stored as %v: %s is %v, the model %v", c.oracle, c.dtype, c.stored, c.otherInModel, got.DType, g.DType)
		}
	}
}

// TestMixedExperts: experts in two types make one parameter of the wider, and a warning.
func TestMixedExperts(t *testing.T) {
	for _, wide := range []string{"0.w1", "1.w3"} { // first and last of the joined tensors
		g := mixedExperts(t, wide)
		p := paramOf(t, g, "model.layers.0.mlp.experts.gate_up_proj")
		if p.DType != modelgraph.F32 || p.Bytes != 4*2*12*4 || len(g.Warnings) != 1 || !strings.Contains(g.Warnings[0], "in several types: counted as F32") {
			t.Errorf("%s: %v of %d B, warnings %q", wide, p.DType, p.Bytes, g.Warnings)
		}
	}
}

// mixedExperts is a Mixtral of two experts with one matrix in fp32.
func mixedExperts(t *testing.T, wide string) *modelgraph.Graph {
	t.Helper()
	config := `{"model_type":"mixtral","hidden_size":4,"intermediate_size":6,"num_hidden_layers":1,"num_attention_heads":1,
		"num_key_value_heads":1,"vocab_size":8,"num_local_experts":2,"dtype":"bfloat16"}`
	dir := llamaFolder(t, config, func(ts []stored) []stored {
		const e = "model.layers.0.mlp.experts."
		ts = without(e + "gate_up_proj")(without(e + "down_proj")(ts))
		for _, w := range []string{"0.w1", "0.w2", "0.w3", "1.w1", "1.w2", "1.w3"} {
			s := st("model.layers.0.block_sparse_moe.experts."+w+".weight", modelgraph.BF16, 6, 4)
			if strings.HasSuffix(w, "w2") {
				s.shape = []int64{4, 6}
			}
			if w == wide {
				s.dtype = modelgraph.F32
			}
			ts = append(ts, s)
		}
		return ts
	})
	g, err := FromCheckpoint(dir)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// tensorOf finds a parameter or buffer.
func tensorOf(t *testing.T, g *modelgraph.Graph, full string) *modelgraph.Tensor {
	t.Helper()
	for i := range g.Layers {
		for _, ts := range [][]modelgraph.Tensor{g.Layers[i].Params, g.Layers[i].Buffers} {
			for j := range ts {
				if modelgraph.FullName(g.Layers[i].Name, ts[j].Name) == full {
					return &ts[j]
				}
			}
		}
	}
	t.Fatalf("no tensor %s", full)
	return nil
}
