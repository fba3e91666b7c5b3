package estimate_test

import (
	"errors"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestPlaced: a number of another strategy is refused, a default that is
// written out is not, and an open strategy takes all.
func TestPlaced(t *testing.T) {
	for _, s := range append(costmodel.Strategies(), costmodel.Auto) {
		pipeline, open := s == costmodel.Pipeline, s == costmodel.Auto
		cut := s == costmodel.Zero1 || s == costmodel.Zero2 || s == costmodel.Zero3 || s == costmodel.FSDP || s == costmodel.HSDP
		for _, c := range []struct {
			w     costmodel.Workload
			field string
			ok    bool
		}{
			{costmodel.Workload{}, "", true},
			{costmodel.Workload{Schedule: costmodel.OneFOneB}, "schedule", true},
			{costmodel.Workload{VirtualStages: 2}, "virtual_stages", true},
			{costmodel.Workload{Schedule: costmodel.GPipe}, "schedule", pipeline || open},
			{costmodel.Workload{VirtualStages: 3}, "virtual_stages", open},
			{costmodel.Workload{Schedule: costmodel.Interleaved}, "schedule", pipeline || open},
			{costmodel.Workload{Schedule: costmodel.Interleaved, VirtualStages: 3}, "schedule", pipeline || open},
			{costmodel.Workload{Schedule: costmodel.GPipe, VirtualStages: 3}, "", false},
			{costmodel.Workload{ShardDegree: 2}, "shard_degree", cut || open},
			{costmodel.Workload{VirtualStages: -1}, "virtual_stages", false},
			{costmodel.Workload{ShardDegree: -1}, "shard_degree", false},
		} {
			c.w.Strategy = s
			err := estimate.CheckPlaced(&c.w)
			var fault *costmodel.FieldError
			if (err == nil) != c.ok || err != nil && (!errors.As(err, &fault) || c.field != "" && fault.Field != c.field) {
				t.Errorf("%+v: %v", c.w, err)
			}
		}
	}
}

// TestPositions: only a learned table bounds the sequence.
func TestPositions(t *testing.T) {
	table := func(name string, rows int64, kind string) modelgraph.Layer {
		return modelgraph.Layer{
			Name: name, Stream: modelgraph.Stream{Kind: kind, Tokens: map[bool]int64{true: rows}[kind == modelgraph.Fixed]}, Op: modelgraph.Embedding{Vocab: rows, Dim: 4},
			Params: []modelgraph.Tensor{{Name: "weight", Shape: []int64{rows, 4}, DType: modelgraph.BF16}},
		}
	}
	model := func(family string, most int64, layers ...modelgraph.Layer) *modelgraph.Graph {
		g, err := modelgraph.New("m", layers, nil)
		if err != nil {
			t.Fatal(err)
		}
		g.Family, g.MaxSeq = family, most
		return g
	}
	gpt := model("gpt2", 100, table("wte", 50, ""), table("wpe", 100, ""))
	opt := model("opt", 98, table("embed_positions", 100, ""))
	both := model("whisper", 40, table("encoder.embed_positions", 70, modelgraph.Fixed), table("decoder.embed_positions", 40, modelgraph.Target))
	rotary := model("llama", 100, table("wte", 50, ""))
	unread := model("", 0, table("wpe", 100, ""))
	for name, c := range map[string]struct {
		g     *modelgraph.Graph
		w     costmodel.Workload
		field string // of the fault; empty: none
		seq   int64
	}{
		"full":            {gpt, costmodel.Workload{Seq: 100}, "", 100},
		"one more":        {gpt, costmodel.Workload{Seq: 101}, "seq", 0},
		"default":         {gpt, costmodel.Workload{}, "", 100},
		"room":            {gpt, costmodel.Workload{NewTokens: 30}, "", 70},
		"no room":         {gpt, costmodel.Workload{NewTokens: 100}, "new_tokens", 0},
		"generated":       {gpt, costmodel.Workload{Seq: 90, NewTokens: 11}, "new_tokens", 0},
		"just generated":  {gpt, costmodel.Workload{Seq: 90, NewTokens: 10}, "", 90},
		"offset":          {opt, costmodel.Workload{Seq: 99}, "seq", 0},
		"decoder":         {both, costmodel.Workload{Seq: 10, TargetSeq: 41}, "target_seq", 0},
		"decoder as seq":  {both, costmodel.Workload{}, "", 40},
		"decoder goes on": {both, costmodel.Workload{Seq: 9, TargetSeq: 30, NewTokens: 11}, "new_tokens", 0},
		"rotary":          {rotary, costmodel.Workload{Seq: 1000}, "", 1000},
		"unread":          {unread, costmodel.Workload{Seq: 1000}, "", 1000},
	} {
		c.w.Mode = costmodel.Infer
		w, err := estimate.Resolve(c.g, c.w)
		var fault *costmodel.FieldError
		switch {
		case c.field == "" && (err != nil || w.Seq != c.seq):
			t.Errorf("%s: %d tokens, %v", name, w.Seq, err)
		case c.field != "" && (!errors.As(err, &fault) || fault.Field != c.field):
			t.Errorf("%s: %v, want a fault of %s", name, err, c.field)
		}
		if c.w.Mode = costmodel.Load; c.w.NewTokens == 0 {
			if _, err := estimate.Resolve(c.g, c.w); err != nil {
				t.Errorf("%s: %v under load", name, err)
			}
		}
	}
	for name, c := range map[string]struct {
		g           *modelgraph.Graph
		seq, target bool
		ok          bool
	}{
		"decoder":        {gpt, true, false, true},
		"no decoder":     {gpt, false, true, false},
		"as the decoder": {both, true, false, true},
		"both":           {both, true, true, false}, // the encoder always reads as much
		"unread":         {unread, true, false, true},
	} {
		if err := estimate.CheckLengths(c.g, c.seq, c.target); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
