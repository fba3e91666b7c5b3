package paged

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// modelRow is a model that vLLM's own classes built, without a GPU.
type modelRow struct {
	In struct {
		Model    string
		GPU      []json.RawMessage
		TP, PP   int64
		Flags    map[string]any
		Override map[string]json.RawMessage
	}
	Out struct {
		Error   string
		Weights []struct {
			Tensor     int   `json:"tp_rank"`
			Stage      int   `json:"pp_rank"`
			Parameters int64 // bytes
			Buffers    int64
			Loaded     *struct{ Parameters, Buffers int64 }
		}
		Ranks   [][][2]int
		Batched int64 `json:"max_num_batched_tokens"`
		Length  int64 `json:"max_model_len"`
		Plans   []struct {
			Available []int64
			Auto      bool
			Error     string
			Blocks    int64 `json:"num_blocks"`
			Length    int64 `json:"max_model_len"`
			Tokens    int64
		}
	}
}

// unlike says why weights or plans of a row are not compared; "": they are.
func (row *modelRow) unlike() (weights, plans string) {
	quantized := string(row.In.Override["quantization_config"])
	switch model := row.In.Model; {
	case row.In.Flags["quantization"] != nil:
		return "devmap reads no model that the engine quantizes when it loads", "the same"
	case model == "mistral-small-3.1-24b":
		weights = "its config leaves the tie of tables to the class, and vLLM's differs from transformers'"
	case strings.HasPrefix(model, "gpt-oss"):
		weights = "kernels of other GPUs, and more ranks, round widths of MXFP4 up"
	case model == "gemma-3n-e2b-it":
		weights = "parts of its layers are whole on each rank"
	case model == "qwen3-30b-a3b" && row.In.TP == 8 && (strings.Contains(quantized, "awq") || strings.Contains(quantized, "gptq")):
		weights = "Marlin pads narrow experts"
	case model == "phi-3.5-moe":
		plans = "vLLM gives its layers a window that its config only has for long prompts"
	case model == "granite-4.0-h-tiny" && row.In.PP > 1:
		plans = "a stage has no attention, and its pages then have other sizes"
	}
	return weights, plans
}

// TestModels compares weights of each rank, blocks and tokens with those of vLLM 0.33's own classes
// and its planner of the cache.
func TestModels(t *testing.T) {
	configs := publicConfigs(t)
	weights, plans, refused := 0, 0, 0
	for _, row := range fixtures.Must(fixtures.Rows[modelRow]("../../../../fixtures/oracle/engines/vllm_models.jsonl.gz"))(t) {
		id := fmt.Sprintf("%s, tp %d, pp %d, %v %s", row.In.Model, row.In.TP, row.In.PP, row.In.Flags, row.In.Override)
		model := overridden(t, configs[row.In.Model], row.In.Override)
		if model == nil {
			continue
		}
		noWeights, noPlans := row.unlike()
		if row.Out.Error != "" {
			refused++
			if strings.Contains(row.Out.Error, "divisible by") && !strings.Contains(row.Out.Error, "per_partition") && !strings.Contains(row.Out.Error, "WNA16") && row.In.PP == 1 && model.Takes(row.In.TP) == nil {
				t.Errorf("%s is taken; vLLM: %s", id, row.Out.Error)
			}
			continue
		}
		set := Settings{Version: Version{0, 33}, Degrees: Degrees{Tensor: row.In.TP, Pipeline: row.In.PP, Data: 1}, Block: 16, Batched: row.Out.Batched, Context: row.Out.Length}
		if row.In.Flags["enable_expert_parallel"] == true {
			set.Experts = row.In.TP
		}
		set.Machete = string(row.In.GPU[2]) == "[9,0]"
		if row.In.Flags["kv_cache_dtype"] == "fp8" {
			set.CacheElement = 1
		}
		if err := model.Takes(row.In.TP); err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		counts := VLLMStages(len(model.Layers), int(row.In.PP))
		starts := make([]int, len(counts)+1)
		for stage, count := range counts {
			starts[stage+1] = starts[stage] + count
		}
		for _, rank := range row.Out.Weights {
			if noWeights != "" {
				break
			}
			weights++
			found, want := set.Weights(model, starts[rank.Stage], starts[rank.Stage+1]), rank.Parameters+rank.Buffers
			if rank.Loaded != nil {
				want = max(want, rank.Loaded.Parameters+rank.Loaded.Buffers)
			}
			if off := float64(found)/float64(want) - 1; rank.Tensor == 0 && math.Abs(off) > 0.01 {
				t.Errorf("%s, stage %d: %d bytes of weights, vLLM %d (%+.2f %%)", id, rank.Stage, found, want, 100*off)
			}
		}
		pool, err := set.Pool(model)
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		for _, plan := range row.Out.Plans {
			if noPlans != "" {
				break
			}
			plans++
			blocks := int64(math.MaxInt64)
			for stage := range counts {
				if in, ok := pool.In(plan.Available[stage], starts[stage], starts[stage+1]); ok {
					blocks = min(blocks, in)
				}
			}
			request := set.Request(model)
			if plan.Auto {
				request.Length = pool.Longest(blocks, request.Length, request)
			}
			switch {
			case plan.Error != "":
				if pool.Fits(blocks, request) && request.Length > 0 {
					t.Errorf("%s fits; vLLM: %s", id, plan.Error)
				}
			case blocks != plan.Blocks || request.Length != plan.Length || pool.Tokens(blocks, request) != plan.Tokens:
				t.Errorf("%s: %d blocks, length %d, %d tokens; vLLM %d, %d, %d", id, blocks, request.Length, pool.Tokens(blocks, request), plan.Blocks, plan.Length, plan.Tokens)
			}
		}
	}
	t.Logf("%d weights of ranks, %d plans, %d refused", weights, plans, refused)
	if weights < 250 || plans < 700 || refused < 20 {
		t.Errorf("only %d weights of ranks, %d plans, %d refused", weights, plans, refused)
	}
}

// overridden is the model of a config with other values; nil: devmap does not read it, or refuses it.
func overridden(t *testing.T, config json.RawMessage, override map[string]json.RawMessage) *Model {
	t.Helper()
	if len(override) > 0 {
		values := map[string]json.RawMessage{}
		if err := json.Unmarshal(config, &values); err != nil {
			t.Fatal(err)
		}
		maps.Copy(values, override)
		config, _ = json.Marshal(values)
	}
	graph, err := hf.FromConfig("config.json", config)
	if err != nil {
		return nil
	}
	model, err := FromGraph(graph, 2)
	if err != nil {
		return nil
	}
	return model
}
