package paged

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// sglangRow is a question that SGLang's own code answered.
type sglangRow struct {
	In struct {
		Model  string
		GPU    []json.RawMessage
		TP, PP int64
		Flags  map[string]any
		Before float64
		Free   []float64
	}
	Out struct {
		Error    string
		Fraction float64 `json:"mem_fraction_static"`
		Batched  int64   `json:"chunked_prefill_size"`
		Tokens   []int64
		Layers   [][2]int
		Page     int64 `json:"page_size"`
		States   int64 `json:"mamba_cache_size"`
	}
}

// sglangHasNo are models without a class in SGLang 0.5.23, and Gemma 3n, whose tower has no size that
// devmap reads.
var sglangHasNo = map[string]bool{"jamba-1.5-mini": true, "gemma-3n-e2b": true}

// TestSGLang compares fractions and tokens with SGLang 0.5.23's own code.
func TestSGLang(t *testing.T) {
	configs := publicConfigs(t)
	models := map[string]*Model{}
	fractions, tokens := 0, 0
	skipped := map[string]int{}
	for _, row := range fixtures.Must(fixtures.Rows[sglangRow]("../../../../fixtures/oracle/engines/sglang_memory.jsonl.gz"))(t) {
		if row.Out.Error != "" || row.Out.Page > 1 || sglangHasNo[row.In.Model] {
			continue
		}
		model := models[row.In.Model]
		if model == nil {
			graph, err := hf.FromConfig("config.json", configs[row.In.Model])
			if err != nil {
				skipped[row.In.Model+": "+err.Error()]++
				continue
			}
			if model, err = FromGraph(graph, 2); err != nil {
				skipped[row.In.Model+": "+err.Error()]++
				continue
			}
			models[row.In.Model] = model
		}
		var mib int64
		if err := json.Unmarshal(row.In.GPU[1], &mib); err != nil {
			t.Fatal(err)
		}
		var capability [2]int
		if err := json.Unmarshal(row.In.GPU[2], &capability); err != nil {
			t.Fatal(err)
		}
		gpu := GPU{Total: mib << 20, Fabric: capability[0] >= 9}
		set := Settings{Engine: SGLang, Degrees: Degrees{Tensor: row.In.TP, Pipeline: row.In.PP, Data: 1}, Batched: SGLangTokens(gpu), Block: 1}
		known := true
		for name, value := range row.In.Flags {
			number, _ := value.(float64)
			switch name {
			case "chunked_prefill_size":
				set.Batched = int64(number)
			case "mem_fraction_static":
				set.Share = number
			case "kv_cache_dtype":
				if value != "auto" && value != "bfloat16" {
					set.CacheElement = 1
				}
			case "context_length":
			case "max_running_requests":
				set.Sequences = int64(number)
				known = known && row.In.Flags["disable_radix_cache"] == nil
			case "disable_cuda_graph":
				set.Eager = true
			default:
				known = false
			}
		}
		if !known || set.Batched < 0 {
			continue
		}
		fractions++
		if found := set.Fraction(model, gpu); math.Abs(found-row.Out.Fraction) > 1e-9 {
			t.Errorf("%s on %d MiB, tp %d, pp %d, %v: fraction %v, SGLang %v", row.In.Model, mib, row.In.TP, row.In.PP, row.In.Flags, found, row.Out.Fraction)
		}
		if len(row.Out.Tokens) == 0 {
			continue
		}
		tokens++
		pool, err := set.Pool(model)
		if err != nil {
			t.Fatal(err)
		}
		var counts []int
		for _, layers := range row.Out.Layers {
			counts = append(counts, layers[1]-layers[0])
		}
		const gib = 1 << 30
		least := math.Inf(1)
		for _, free := range row.In.Free {
			least = min(least, free)
		}
		set.Share = row.Out.Fraction
		slots, _ := sglangSlots(&set, model, pool, gpu, counts, int64(row.In.Before*gib), int64(least*gib))
		most := int64(1)
		if row.Out.States > 0 { // SGLang keeps states in fp32: a slot of them has another size
			most = row.Out.Tokens[0] / (row.Out.States + 1)
		}
		if off := slots - row.Out.Tokens[0]; off < -most || off > most {
			t.Errorf("%s, tp %d, pp %d, %v: %d tokens, SGLang %d", row.In.Model, row.In.TP, row.In.PP, row.In.Flags, slots, row.Out.Tokens[0])
		}
	}
	t.Logf("%d fractions, %d tokens; not read: %v", fractions, tokens, skipped)
	if fractions < 100 || tokens < 80 {
		t.Errorf("only %d fractions and %d tokens", fractions, tokens)
	}
}
