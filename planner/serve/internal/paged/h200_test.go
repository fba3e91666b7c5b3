package paged

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// h200Row is a start of vLLM 0.26 on an H200, in bytes.
type h200Row struct {
	ID           string
	Config       json.RawMessage
	V2, Eager    bool
	Quantization *string
	KV           *string
	Batched      int64
	Sequences    int64
	Context      int64
	Share        float64
	Block        int64
	Total        int64
	Weights      int64
	Peak         int64
	Other        int64
	Estimate     int64
	Available    int64
	Blocks       *int64
	Tokens       *int64
}

// TestH200 compares starts of vLLM 0.26 on one H200 with the prediction: weights, the peak of the
// profile run, and what is left for the cache; and from what was left, blocks and tokens, which are
// equal.
func TestH200(t *testing.T) {
	starts, blocks := 0, 0
	for _, row := range fixtures.Must(fixtures.Rows[h200Row]("../../../../fixtures/measured/vllm_h200.jsonl.gz"))(t) {
		graph, err := hf.FromConfig("config.json", row.Config)
		if err != nil {
			t.Fatal(row.ID, err)
		}
		model, err := FromGraph(graph, 2)
		if err != nil {
			t.Fatal(row.ID, err)
		}
		set := Settings{
			Version: Version{0, 26}, Degrees: Degrees{Tensor: 1, Pipeline: 1, Data: 1},
			Context: row.Context, Sequences: row.Sequences, Batched: row.Batched, Share: row.Share, Block: row.Block, Eager: row.Eager,
		}
		if row.KV != nil {
			set.CacheElement = 1
		}
		forced := set.firstRunner(model) == row.V2
		if forced && !row.V2 {
			set.Version = Version{0, 20}
		}
		end := len(model.Layers)
		rank := set.Rank(model, GPU{Total: row.Total}, 0, end)
		pool, err := set.Pool(model)
		if err != nil {
			t.Fatal(row.ID, err)
		}
		if row.Blocks != nil {
			blocks++
			count, _ := pool.In(row.Available, 0, end)
			if tokens := pool.Tokens(count, set.Request(model)); count != *row.Blocks || tokens != *row.Tokens {
				t.Errorf("%s: %d blocks and %d tokens in %d bytes, vLLM had %d and %d", row.ID, count, tokens, row.Available, *row.Blocks, *row.Tokens)
			}
		}
		if row.Quantization != nil || forced && row.V2 {
			continue // weights that vLLM quantises itself; a runner that is not the default
		}
		starts++
		const gib = 1 << 30
		peak := rank.Activation
		if forced {
			rank.Cache -= row.Estimate
		}
		t.Logf("%-30s weights %+.3f GiB, peak %+.3f, other %+.3f, graphs %+.3f, cache %+.3f", row.ID, float64(rank.Weights-row.Weights)/gib, float64(peak-row.Peak)/gib, float64(rank.Other-row.Other)/gib, float64(rank.Graphs-row.Estimate)/gib, float64(rank.Cache-row.Available)/gib)
		const block = 20 << 20 // of the allocator: a model of a few layers leaves a part free
		if off := math.Abs(float64(rank.Weights - row.Weights)); off > 0.01*float64(row.Weights)+block {
			t.Errorf("%s: weights of %d bytes, vLLM had %d", row.ID, rank.Weights, row.Weights)
		}
		if math.Abs(float64(rank.Cache-row.Available)) > 0.3*gib {
			t.Errorf("%s: %.3f GiB left for the cache, vLLM had %.3f", row.ID, float64(rank.Cache)/gib, float64(row.Available)/gib)
		}
	}
	if starts < 20 || blocks < 23 {
		t.Errorf("only %d starts and %d caches", starts, blocks)
	}
}
