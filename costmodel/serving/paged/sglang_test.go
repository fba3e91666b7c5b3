package paged_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/devmap-dev/devmap/costmodel/serving/paged"
)

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
		Fraction float64  `json:"mem_fraction_static"`
		Tokens   []int64  `json:"tokens"`
		Layers   [][2]int `json:"layers"`
		Cell     []float64
		Batched  int64  `json:"chunked_prefill_size"`
		Context  int64  `json:"context_len"`
		States   *int64 `json:"mamba_cache_size"`
	}
}
