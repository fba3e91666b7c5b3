package paged

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph/hf"
)

type modelRow struct {
	In struct {
		Model  string
		TP, PP int64
		Flags  map[string]any
	}
	Out struct {
		Error   string
		Class   string
		Weights []struct {
			TP         int `json:"tp_rank"`
			PP         int `json:"pp_rank"`
			Parameters int64
			Buffers    int64
		}
		Block    int64  `json:"block_size"`
		States   string `json:"mamba_cache_mode"`
		Ranks    [][][2]int
		InFlight int64 `json:"in_flight"`
		Batched  int64 `json:"max_num_batched_tokens"`
		Length   int64 `json:"max_model_len"`
		Layout   string
		Plans    []struct {
			Available []int64
			Auto      bool
			Error     string
			Blocks    int64 `json:"num_blocks"`
			Length    int64 `json:"max_model_len"`
			Tokens    int64
		}
		Specs []struct {
			Type  string
			Block int64 `json:"block_size"`
			Page  int64
		}
	}
}

func TestModels(t *testing.T) {
	configs := publicConfigs(t)
	for _, name := range []string{"vllm_one.jsonl", "vllm_two.jsonl"} {
		file, err := os.Open("/work/scratch/judge/golden/" + name)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 1<<22)
		for lines.Scan() {
			var row modelRow
			if json.Unmarshal(lines.Bytes(), &row) != nil || row.Out.Error != "" || len(row.Out.Weights) == 0 {
				continue
			}
			id := fmt.Sprintf("%s tp%d pp%d %v", row.In.Model, row.In.TP, row.In.PP, row.In.Flags)
			config := configs[row.In.Model]
			if config == nil {
				fmt.Println("no config", id)
				continue
			}
			graph, err := hf.FromConfig("config.json", config)
			if err != nil {
				fmt.Println(id, err)
				continue
			}
			model, err := FromGraph(graph, 2)
			if err != nil {
				fmt.Println("REFUSED", id, err)
				continue
			}
			total, last := 0, 0
			for _, rank := range row.Out.Ranks {
				for _, l := range rank {
					last = max(last, l[0]+1)
				}
				total += len(rank)
			}
			if last > 0 && last != len(model.Layers) || last == 0 {
				fmt.Println("LAYERS", id, total, last, len(model.Layers))
				continue
			}
			set := Settings{Version: Version{0, 33}, Degrees: Degrees{row.In.TP, row.In.PP, 1, row.In.Flags["enable_expert_parallel"] == true}, Block: 16}
			if row.In.Flags["kv_cache_dtype"] == "fp8" {
				set.CacheElement = 1
			}
			if err := model.Takes(row.In.TP); err != nil {
				fmt.Println("NOT TAKEN", id, err)
			}
			at := 0
			for stage, count := range VLLMStages(len(model.Layers), int(row.In.PP)) {
				for _, w := range row.Out.Weights {
					if w.TP == 0 && w.PP == stage {
						found, want := set.Weights(model, at, at+count), w.Parameters+w.Buffers
						if off := float64(found)/float64(want) - 1; math.Abs(off) > 0.002 {
							fmt.Printf("%s stage %d: %d, vLLM %d + %d (%+.2f %%)\n", id, stage, found, w.Parameters, w.Buffers, 100*off)
						}
					}
				}
				at += count
			}
			pool, err := set.Pool(model)
			if err != nil {
				fmt.Println("POOL", id, err)
				continue
			}
			at = 0
			for r, rank := range row.Out.Ranks {
				_ = r
				for _, l := range rank {
					spec := row.Out.Specs[l[1]]
					if l[0] >= 0 && l[0] < len(model.Layers) {
						cache := set.cache(model, l[0])
						cache.Block = spec.Block
						if cache.Kind != State && cache.page() != spec.Page {
							fmt.Printf("%s layer %d: page %d, vLLM %s %d\n", id, l[0], cache.page(), spec.Type, spec.Page)
							break
						}
					}
				}
			}
			set.Batched, set.Context = row.Out.Batched, row.Out.Length
			for _, plan := range row.Out.Plans {
				blocks := int64(math.MaxInt64)
				at := 0
				for stage, count := range VLLMStages(len(model.Layers), int(row.In.PP)) {
					if in, ok := pool.In(plan.Available[stage], at, at+count); ok {
						blocks = min(blocks, in)
					}
					at += count
				}
				request := set.Request(model)
				if plan.Auto {
					request.Length = pool.Longest(blocks, request.Length, request)
				}
				if plan.Error != "" {
					if pool.Fits(blocks, request) && request.Length > 0 {
						fmt.Println("FITS", id, plan.Error)
					}
					continue
				}
				if blocks != plan.Blocks || request.Length != plan.Length || pool.Tokens(blocks, request) != plan.Tokens {
					fmt.Printf("PLAN %s: %d blocks %d len %d tokens; vLLM %d %d %d (block %d, %d) %s\n", id, blocks, request.Length, pool.Tokens(blocks, request), plan.Blocks, plan.Length, plan.Tokens, pool.groups[0].Block, row.Out.Block, row.Out.Layout)
				}
			}
		}
		_ = file.Close()
	}
}
