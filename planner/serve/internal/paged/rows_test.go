package paged

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// configsOfRows are configs of the models of the rows that are not built in.
var configsOfRows = map[string]string{
	"RedHatAI/Qwen2.5-7B-Instruct-quantized.w8a8":   `{"model_type":"qwen2","hidden_size":3584,"num_hidden_layers":28,"num_attention_heads":28,"num_key_value_heads":4,"intermediate_size":18944,"vocab_size":152064,"max_position_embeddings":32768,"torch_dtype":"bfloat16","tie_word_embeddings":false,"quantization_config":{"quant_method":"compressed-tensors","format":"int-quantized","quantization_status":"compressed","config_groups":{"group_0":{"targets":["Linear"],"weights":{"num_bits":8,"type":"int","strategy":"channel","symmetric":true,"dynamic":false},"input_activations":{"num_bits":8,"type":"int","strategy":"token","symmetric":true,"dynamic":true}}},"ignore":["lm_head"]}}`,
	"google/gemma-2-2b-it":                          `{"model_type":"gemma2","hidden_size":2304,"num_hidden_layers":26,"num_attention_heads":8,"num_key_value_heads":4,"head_dim":256,"intermediate_size":9216,"vocab_size":256000,"max_position_embeddings":8192,"torch_dtype":"bfloat16"}`,
	"google/gemma-2-27b-it":                         `{"model_type":"gemma2","hidden_size":4608,"num_hidden_layers":46,"num_attention_heads":32,"num_key_value_heads":16,"head_dim":128,"intermediate_size":36864,"vocab_size":256000,"max_position_embeddings":8192,"torch_dtype":"bfloat16"}`,
	"google/gemma-7b":                               `{"model_type":"gemma","hidden_size":3072,"num_hidden_layers":28,"num_attention_heads":16,"num_key_value_heads":16,"head_dim":256,"intermediate_size":24576,"vocab_size":256000,"max_position_embeddings":8192,"torch_dtype":"bfloat16"}`,
	"codellama/CodeLlama-7b-hf":                     `{"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":32,"intermediate_size":11008,"vocab_size":32016,"max_position_embeddings":16384,"rms_norm_eps":1e-5,"torch_dtype":"bfloat16","tie_word_embeddings":false}`,
	"ibm-granite/granite-3.1-2b-instruct":           `{"model_type":"granite","hidden_size":2048,"num_hidden_layers":40,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":8192,"vocab_size":49155,"max_position_embeddings":131072,"torch_dtype":"bfloat16","tie_word_embeddings":true}`,
	"ibm-granite/granite-3.1-8b-instruct":           `{"model_type":"granite","hidden_size":4096,"num_hidden_layers":40,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":12800,"vocab_size":49155,"max_position_embeddings":131072,"torch_dtype":"bfloat16","tie_word_embeddings":true}`,
	"Qwen/Qwen3-14B":                                `{"model_type":"qwen3","hidden_size":5120,"num_hidden_layers":40,"num_attention_heads":40,"num_key_value_heads":8,"head_dim":128,"intermediate_size":17408,"vocab_size":151936,"max_position_embeddings":40960,"torch_dtype":"bfloat16","tie_word_embeddings":false}`,
	"Qwen/Qwen1.5-MoE-A2.7B":                        "qwen1.5-moe",
	"microsoft/phi-2":                               "phi-2",
	"Qwen/Qwen2.5-7B-Instruct":                      "qwen2.5-7b",
	"Qwen/Qwen2.5-72B-Instruct":                     "qwen2.5-72b",
	"meta-llama/Llama-3.1-8B-Instruct":              "llama-3.1-8b",
	"mistralai/Mistral-Small-3.1-24B-Instruct-2503": "mistral-small-3.1",
	"mistralai/Mistral-Small-3.2-24B-Instruct-2506": "mistral-small-3.1",
	"Qwen/Qwen3-8B":                                 "qwen3-8b", "Qwen/Qwen3-32B": "Qwen/Qwen3-32B", "Qwen/Qwen3-0.6B": "Qwen/Qwen3-0.6B", "openai/gpt-oss-120b": "openai/gpt-oss-120b",
}

func graphOf(t *testing.T, model string) *modelgraph.Graph {
	t.Helper()
	name, ok := configsOfRows[model]
	if !ok {
		return nil
	}
	if strings.HasPrefix(name, "{") {
		graph, err := hf.FromConfig("config.json", []byte(name))
		if err != nil {
			t.Fatal(model, err)
		}
		return graph
	}
	if graph, err := load.Model(name, load.Options{BuiltIn: os.DirFS("../../../../fixtures/models"), Env: func(string) string { return "" }}); err == nil {
		return graph
	}
	config := publicConfigs(t)[name]
	for _, one := range fixtures.Must(fixtures.Rows[published]("../../../../fixtures/oracle/published.jsonl.gz"))(t) {
		if one.Name == name && config == nil {
			config = one.Config
		}
	}
	if config != nil {
		graph, err := hf.FromConfig("config.json", config)
		if err != nil {
			t.Fatal(model, err)
		}
		return graph
	}
	t.Fatalf("no config of %s", name)
	return nil
}

// row is what a start-up log of vLLM says, in GiB.
type row struct {
	Model        string
	TP, PP       int64
	Quantization *string
	DType        string
	Share        float64 `json:"gpu_memory_utilization"`
	Length       int64   `json:"max_model_len"`
	BlockSize    *int64  `json:"block_size"`
	Weights      float64 `json:"weights_gib"`
	Activation   float64 `json:"activation_peak_gib"`
	Other        float64 `json:"non_torch_gib"`
	KV           float64 `json:"kv_gib"`
	Blocks       int64   `json:"num_gpu_blocks"`
	Tokens       int64   `json:"kv_tokens"`
	Total        float64 `json:"total_gib"`
}

// TestRows compares published start-up logs of vLLM 0.19 on H100 with the prediction. Weights are
// within 1 %, the cache within 0.3 GiB, and the blocks of the printed cache are those of the log, up to
// the two digits of the GiB.
func TestRows(t *testing.T) {
	data, err := os.ReadFile("../../../../fixtures/measured/vllm_rows.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows struct{ Planner []row }
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	weights, caches, blocks := 0, 0, 0
	for _, row := range rows.Planner {
		graph := graphOf(t, row.Model)
		if graph == nil {
			continue
		}
		element := int64(2)
		if row.DType == "f32" {
			element = 4
		}
		model, err := FromGraph(graph, element)
		if err != nil {
			t.Fatal(row.Model, err)
		}
		set := Settings{Version: Version{0, 19}, Degrees: Degrees{Tensor: row.TP, Pipeline: row.PP, Data: 1}, Context: row.Length, Sequences: 1024, Batched: 8192, Share: row.Share, Block: 16}
		if row.BlockSize != nil {
			set.Block = *row.BlockSize
		}
		const gib = 1 << 30
		end := len(model.Layers) / int(row.PP)
		rank := set.Rank(model, GPU{Total: 7919 * gib / 100, Fabric: true}, 0, end)
		pool, err := set.Pool(model)
		if err != nil {
			t.Fatal(row.Model, err)
		}
		if row.Weights > 0 && row.Model != "openai/gpt-oss-120b" { // 62.05 GiB: its kernel rounded widths up more
			weights++
			if off := float64(rank.Weights)/gib/row.Weights - 1; math.Abs(off) > 0.01 {
				t.Errorf("%s, tp %d: weights of %.2f GiB, vLLM printed %.2f", row.Model, row.TP, float64(rank.Weights)/gib, row.Weights)
			}
		}
		if row.KV > 0 && row.Total > 0 {
			caches++
			t.Logf("%s, tp %d, pp %d: cache of %.2f GiB, vLLM printed %.2f", row.Model, row.TP, row.PP, float64(rank.Cache)/gib, row.KV)
			if math.Abs(float64(rank.Cache)/gib-row.KV) > 0.3 {
				t.Errorf("%s, tp %d, pp %d: cache of %.2f GiB, vLLM printed %.2f", row.Model, row.TP, row.PP, float64(rank.Cache)/gib, row.KV)
			}
		}
		if row.Blocks > 0 {
			blocks++
			least, _ := pool.In(int64((row.KV-0.005)*gib), 0, end)
			most, _ := pool.In(int64((row.KV+0.005)*gib), 0, end)
			if row.Blocks < least || row.Blocks > most {
				t.Errorf("%s: %d to %d blocks in %.2f GiB, vLLM printed %d", row.Model, least, most, row.KV, row.Blocks)
			}
		}
	}
	if weights < 20 || caches < 18 || blocks < 11 {
		t.Errorf("only %d weights, %d caches and %d blocks", weights, caches, blocks)
	}
}
