package hf

import (
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// TestComposed: the shape that the operations of core_model_loading.py make.
func TestComposed(t *testing.T) {
	rule := func(targets int, ops ...[]any) *transform { return &transform{to: make([]string, targets), ops: ops} }
	stack, join := []any{"MergeModulelist", 0.}, []any{"Concatenate", 1.}
	type of struct {
		source, member int
		shape          []int64
	}
	for name, c := range map[string]struct {
		by     *transform
		pieces []of
		want   []int64 // the parameter's
		made   []int64
	}{
		"experts":        {rule(1, stack, join), []of{{0, 0, []int64{6, 4}}, {1, 0, []int64{6, 4}}, {0, 1, []int64{6, 4}}, {1, 1, []int64{6, 4}}}, nil, []int64{2, 12, 4}},
		"one source":     {rule(1, stack), []of{{0, 0, []int64{6, 4}}, {0, 1, []int64{6, 4}}}, nil, []int64{2, 6, 4}},
		"a missing one":  {rule(1, stack), []of{{0, 0, []int64{6, 4}}, {0, 2, []int64{6, 4}}}, nil, []int64{48}},
		"half a pair":    {rule(1, stack, join), []of{{0, 0, []int64{6, 4}}, {1, 0, []int64{6, 4}}, {0, 1, []int64{6, 4}}}, nil, []int64{72}},
		"unequal":        {rule(1, stack), []of{{0, 0, []int64{6, 4}}, {0, 1, []int64{6, 5}}}, nil, []int64{54}},
		"unequal pair":   {rule(1, []any{"Concatenate", 0.}), []of{{0, 0, []int64{6, 4}}, {1, 0, []int64{6, 5}}}, nil, []int64{54}},
		"joined rows":    {rule(1, []any{"Concatenate", 0.}), []of{{0, 0, []int64{6, 4}}, {1, 0, []int64{2, 4}}}, nil, []int64{8, 4}},
		"a third":        {rule(3, []any{"Chunk", 0.}), []of{{0, 0, []int64{12, 4}}}, nil, []int64{4, 4}},
		"no third":       {rule(3, []any{"Chunk", 0.}), []of{{0, 0, []int64{13, 4}}}, nil, []int64{52}},
		"transposed":     {rule(1, []any{"Transpose", 1., 2., 1.}), []of{{0, 0, []int64{2, 4, 6}}}, []int64{2, 6, 4}, []int64{2, 6, 4}},
		"as it should":   {rule(1, []any{"Transpose", 1., 2., 1.}), []of{{0, 0, []int64{2, 6, 4}}}, []int64{2, 6, 4}, []int64{2, 6, 4}},
		"whatever it is": {rule(1, []any{"Transpose", 0., 1., 0.}), []of{{0, 0, []int64{6, 4}}}, []int64{6, 4}, []int64{4, 6}},
	} {
		var pieces []piece
		for _, p := range c.pieces {
			pieces = append(pieces, piece{slot{by: c.by, source: p.source, member: p.member}, &safetensors.Tensor{Shape: p.shape}})
		}
		if got := composed(pieces, c.want); !slices.Equal(got, c.made) {
			t.Errorf("%s: %v, want %v", name, got, c.made)
		}
	}
}
