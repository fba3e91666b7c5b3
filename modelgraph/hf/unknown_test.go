package hf

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestDigests: values for running are not part of a model's digest, which plans of earlier versions
// have. Each fixture has its digest from before they were read.
func TestDigests(t *testing.T) {
	lines := fixtures.Must(os.ReadFile("testdata/digests.txt"))(t)
	count := 0
	for line := range strings.Lines(string(lines)) {
		name, want, _ := strings.Cut(strings.TrimSpace(line), " ")
		if got := fixture(t, name).Digest(); got != want {
			t.Errorf("%s: %s, before it was %s", name, got, want)
		}
		count++
	}
	if count != 34 {
		t.Errorf("%d digests", count)
	}
}

// fixture is a built-in model.
func fixture(t *testing.T, name string) *modelgraph.Graph {
	t.Helper()
	data := fixtures.Must(fs.ReadFile(fixtures.Models(), name+"/"+ConfigName))(t)
	graph := fixtures.Must(FromConfig(ConfigName, data))(t)
	return graph
}

// TestFixturesSayWhatTheyLack: built-in models of families with known layers run; the others give
// the reason why not, in model.json too.
func TestFixturesSayWhatTheyLack(t *testing.T) {
	entries := fixtures.Must(fs.ReadDir(fixtures.Models(), "."))(t)
	lacking := map[string]string{}
	for _, entry := range entries {
		if _, err := fs.Stat(fixtures.Models(), entry.Name()+"/"+ConfigName); err != nil {
			continue // a pipeline, or the table of hub names
		}
		graph := fixture(t, entry.Name())
		if len(graph.Unknown) > 0 {
			lacking[entry.Name()] = strings.Join(graph.Unknown, "; ")
		}
		var file bytes.Buffer
		if err := modelgraph.Write(&file, graph); err != nil {
			t.Fatal(err)
		}
		again := fixtures.Must(modelgraph.Read(&file, graph.Source))(t)
		ops := cmp.Options{cmpopts.IgnoreUnexported(modelgraph.Layer{}, modelgraph.Tensor{}), cmpopts.IgnoreFields(modelgraph.Layer{}, "Learned")} // a file has no table
		if d := cmp.Diff(graph.Layers, again.Layers, ops, cmpopts.EquateEmpty()); d != "" || !cmp.Equal(graph.Unknown, again.Unknown, cmpopts.EquateEmpty()) {
			t.Errorf("%s: model.json has %q (-graph +read):\n%s", entry.Name(), again.Unknown, d)
		}
	}
	sizes := func(kind string) string {
		return `model_type "` + kind + `": its layers are known by their sizes alone`
	}
	want := map[string]string{
		"bloom-176b": sizes("bloom"), "deepseek-v3": sizes("deepseek_v3"), "gpt-oss-20b": sizes("gpt_oss"),
		"llama-3_1-nemotron-ultra-253b-v1": sizes("nemotron-nas"), "mamba-2.8b": sizes("mamba"), "mixtral-8x7b": sizes("mixtral"),
		"pi0": sizes("openpi_pi0"), "pi0-lora": sizes("openpi_pi0"), "pi05": sizes("openpi_pi05"), "pi05-lora": sizes("openpi_pi05"),
		"opt-13b": sizes("opt"), "paligemma-3b": sizes("paligemma"), "qwen2.5-vl-3b": sizes("qwen2_5_vl"), "qwen3-30b-a3b": sizes("qwen3_moe"),
		"t5-11b": sizes("t5"), "vit-large": sizes("vit"), "whisper-large-v3": sizes("whisper"),
	}
	if d := cmp.Diff(want, lacking); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestOddValues: a value that only running hears of makes no model wrong, and is named.
func TestOddValues(t *testing.T) {
	for _, tt := range []struct {
		modelType string
		more      fields
		want      string
	}{
		{"llama", fields{"rms_norm_eps": "small"}, `rms_norm_eps "small" is not a number from 0 to 1e30`},
		{"llama", fields{"rms_norm_eps": -1e-5}, `rms_norm_eps -0.00001 is not a number from 0 to 1e30`},
		{"llama", fields{"rms_norm_eps": nil}, `rms_norm_eps null is not a number from 0 to 1e30`},
		{"qwen3", fields{"rms_norm_eps": []int{1}}, `rms_norm_eps [1] is not a number from 0 to 1e30`},
		{"llama", fields{"rope_theta": 0}, `rope_theta 0 is not a base`},
		{"mistral", fields{"rope_theta": true}, `rope_theta true is not a number from 0 to 1e30`},
		{"llama", fields{"rope_scaling": fields{"type": 3}}, `rope_scaling.type 3 is not a type of RoPE`},
		{"llama", fields{"rope_scaling": fields{"type": "linear"}}, `rope_scaling.factor is absent`},
		{"qwen2", fields{"rope_parameters": fields{"rope_type": "llama3", "factor": 8, "high_freq_factor": 4}}, `rope_parameters.low_freq_factor is absent`},
		{"qwen2", fields{"rope_parameters": fields{"full_attention": fields{}}}, `rope_parameters has parameters of full_attention alone, which this family does not know`},
		{"gemma", fields{"rope_scaling": fields{"type": "linear", "factor": 2}, "partial_rotary_factor": 1.5}, `partial_rotary_factor 1.5 is not a share of 256 dimensions`},
		{"llama", fields{"rope_scaling": fields{"type": "yarn", "factor": 2, "attention_factor": 0}}, `rope_scaling.attention_factor 0 leaves nothing of q and k`},
		{"llama", fields{"rope_scaling": fields{"type": "yarn", "factor": 1e30, "mscale": 1e30, "mscale_all_dim": 1e-30}}, `rope_scaling.mscale 1e+30 makes a factor of 6.91e+30`},
		{"llama", fields{"rope_scaling": fields{"type": "yarn", "factor": 2, "original_max_position_embeddings": 1.5}}, `rope_scaling.original_max_position_embeddings 1.5 is not an integer from 0 to 2^40`},
		{"phi3", fields{"rope_parameters": fields{"rope_type": "linear", "factor": 2}, "pad_token_id": nil}, `rope type "linear" is not one of Phi-3's (longrope)`},
		{"gemma2", fields{"query_pre_attn_scalar": 0}, `query_pre_attn_scalar 0 has no root to divide by`},
		{"gemma2", fields{"attn_logit_softcapping": -3}, `attn_logit_softcapping -3 is not a number from 0 to 1e30`},
		{"gemma2", fields{"final_logit_softcapping": 0}, `final_logit_softcapping 0 is not a cap: null is none`},
		{"gemma3_text", fields{"rope_parameters": fields{"rope_theta": 5}}, `rope_parameters has "rope_theta" next to layer types`},
		{"gemma3_text", fields{"rope_local_base_freq": nil}, `rope_local_base_freq null is not a number from 0 to 1e30`},
		{"gemma3_text", fields{"rope_scaling": fields{"factor": 8}, "rope_parameters": fields{"sliding_attention": fields{}}}, `rope_scaling scales layers that rope_parameters does not have`},
		{"gemma", fields{"pad_token_id": 256}, `pad_token_id 256 is not a token of 256`},
		{"gemma", fields{"pad_token_id": "x"}, `pad_token_id "x" is not a token`},
		{"gpt2", fields{"layer_norm_epsilon": -1}, `layer_norm_epsilon -1 is not a number from 0 to 1e30`},
		{"bert", fields{"layer_norm_eps": 1e31}, `layer_norm_eps 1e+31 is not a number from 0 to 1e30`},
		{"bert", fields{"position_embedding_type": "relative_key"}, `position_embedding_type "relative_key" is not known here (known: absolute)`},
		{"bert", fields{"position_embedding_type": "absolute"}, ""},
		{"granite", fields{"rms_norm_eps": "small"}, `model_type "granite": its layers are known by their sizes alone`},
	} {
		graph, err := FromConfig(ConfigName, small(t, tt.modelType, tt.more))
		if err != nil {
			t.Errorf("%s: %v", tt.want, err)
			continue
		}
		if got := strings.Join(graph.Unknown, "\n"); got != tt.want {
			t.Errorf("%s %v: %q, want %q", tt.modelType, tt.more, got, tt.want)
		}
		if err := modelgraph.Write(new(bytes.Buffer), graph); err != nil {
			t.Errorf("%s: %v", tt.want, err)
		}
	}
}

// TestOddFolder: values that a config lacks, and unknown layers, are noted for its folder too.
func TestOddFolder(t *testing.T) {
	for _, tt := range []struct{ from, to, want string }{
		{`"hidden_size":8`, `"hidden_size":8,"rms_norm_eps":"x"`, `rms_norm_eps "x" is not a number from 0 to 1e30`},
		{`"model_type":"llama","architectures":["LlamaForCausalLM"]`, `"model_type":"novel"`, `model_type "novel": its layers are known by their sizes alone`},
	} {
		config := []byte(tinyLlama)
		plain := fixtures.Must(FromConfig(ConfigName, config))(t)
		var saved []stored
		for i := range plain.Layers {
			for _, tensor := range plain.Layers[i].Params {
				saved = append(saved, stored{name: modelgraph.FullName(plain.Layers[i].Name, tensor.Name), dtype: modelgraph.BF16, shape: tensor.Shape})
			}
		}
		dir := t.TempDir()
		write(t, filepath.Join(dir, ConfigName), bytes.Replace(config, []byte(tt.from), []byte(tt.to), 1))
		writeShards(t, dir, saved, 2)
		graph := fixtures.Must(FromCheckpoint(dir))(t)
		if got := strings.Join(graph.Unknown, "\n"); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
