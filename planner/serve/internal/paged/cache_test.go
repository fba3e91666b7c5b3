package paged

import (
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
)

// kvRow is a question that vLLM's own planning code answered.
type kvRow struct {
	In struct {
		Model     string
		BlockSize int64 `json:"block_size"`
		Length    int64 `json:"max_model_len"`
		Batched   int64 `json:"max_num_batched_tokens"`
		Async     bool
		V2        bool   `json:"v2_runner"`
		NoHybrid  bool   `json:"no_hybrid"`
		AutoLen   bool   `json:"auto_len"`
		Override  *int64 `json:"override"`
		States    string `json:"mamba_cache_mode"`
		Layout    *string
		Specs     []struct {
			Kind       string
			Heads      int64  `json:"kv_heads"`
			Head       int64  `json:"head_size"`
			Value      *int64 `json:"head_size_v"`
			DType      string
			Window     int64
			Shapes     [][]int64
			DTypes     []string
			BlockSize  int64 `json:"block_size"`
			PagePadded int64 `json:"page_size_padded"`
			Checkpoint int64 `json:"checkpoint_blocks"`
		}
		Ranks     [][][2]int
		Available []int64
	}
	Out struct {
		Error      string
		BlockBytes []int64 `json:"bytes_per_block"`
		RankBlocks []int64 `json:"rank_blocks"`
		Blocks     int64   `json:"num_blocks"`
		Length     int64   `json:"max_model_len"`
		Request    []int64 `json:"blocks_per_request"`
		Tokens     int64
	}
}

// caches are the caches of the layers of all ranks, in order, and the first layer of each rank.
func (row *kvRow) caches() (layers []Cache, starts []int) {
	elements := map[string]int64{"bf16": 2, "f16": 2, "f32": 4, "u8": 1, "fp8": 1}
	for _, rank := range row.In.Ranks {
		starts = append(starts, len(layers))
		for _, layer := range rank {
			spec := &row.In.Specs[layer[1]]
			cache := Cache{
				Kind:  map[string]CacheKind{"full": Full, "sliding": Sliding, "chunked": Chunked, "mla": Latent, "mamba": State}[spec.Kind],
				Heads: spec.Heads, Head: spec.Head, Value: spec.Head, Element: elements[spec.DType], Window: spec.Window, Block: row.In.BlockSize,
			}
			if spec.Value != nil {
				cache.Value = *spec.Value
			}
			if cache.Kind == Latent {
				cache.Value = 0
			}
			if spec.BlockSize > 0 {
				cache.Block = spec.BlockSize
			}
			for i, shape := range spec.Shapes {
				size := elements[spec.DTypes[i]]
				for _, side := range shape {
					size *= side
				}
				cache.Bytes += size
			}
			cache.Bytes = max(cache.Bytes, spec.PagePadded)
			layers = append(layers, cache)
		}
	}
	return layers, append(starts, len(layers))
}

// TestPool compares blocks, lengths and tokens with vLLM 0.33's own code, in its default layout.
func TestPool(t *testing.T) {
	count, answers := 0, 0
	for _, row := range fixtures.Must(fixtures.Rows[kvRow]("../../../../fixtures/oracle/engines/vllm_kv.jsonl.gz"))(t) {
		if row.In.Layout != nil || row.In.NoHybrid || row.In.Override != nil {
			continue
		}
		count++
		if row.Out.Error == "" {
			answers++
		}
		row.compare(t)
	}
	if count < 400 || answers < 300 {
		t.Errorf("only %d rows with %d answers", count, answers)
	}
}

func (row *kvRow) compare(t *testing.T) {
	t.Helper()
	layers, starts := row.caches()
	pool, err := NewPool(layers)
	if err != nil {
		if row.Out.Error == "" {
			t.Errorf("%s: %v, vLLM has %d blocks", row.In.Model, err, row.Out.Blocks)
		}
		return
	}
	stages := int64(len(row.In.Ranks))
	concurrent := stages
	if row.In.Async && row.In.V2 {
		concurrent = stages + 1
	} else if row.In.Async && stages == 1 {
		concurrent = 2
	}
	request := Request{Length: row.In.Length, InFlight: concurrent * row.In.Batched}
	for _, spec := range row.In.Specs {
		if row.In.States == "align" {
			request.States = max(request.States, 2+spec.Checkpoint)
		}
	}
	blocks := int64(1) << 60
	var each []int64
	empty := false
	for rank := range row.In.Ranks {
		size := pool.Bytes(1, starts[rank], starts[rank+1])
		each = append(each, size)
		if size == 0 {
			empty = true
			continue
		}
		blocks = min(blocks, row.In.Available[rank]/size)
	}
	if row.In.AutoLen {
		request.Length = pool.Longest(blocks, request.Length, request)
	}
	fits := !empty && blocks > 0 && request.Length > 0 && pool.Fits(blocks, request)
	switch {
	case strings.Contains(row.Out.Error, "mixed page sizes"):
		return
	case row.Out.Error != "" || !fits:
		if (row.Out.Error == "") != fits {
			t.Errorf("%s: fits %v, vLLM: %q; %+v", row.In.Model, fits, row.Out.Error, row.In)
		}
		return
	}
	if !slices.Equal(each, row.Out.BlockBytes) || blocks != row.Out.Blocks || request.Length != row.Out.Length || pool.Tokens(blocks, request) != row.Out.Tokens {
		t.Errorf("%s: blocks of %v bytes, %d of them, %d of %d tokens; vLLM: %v, %d, %d of %d", row.In.Model,
			each, blocks, pool.Tokens(blocks, request), request.Length, row.Out.BlockBytes, row.Out.Blocks, row.Out.Tokens, row.Out.Length)
	}
}
