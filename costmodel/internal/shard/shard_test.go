package shard_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/shard"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// TestRanks: torch.chunk of 10 rows of 3 over 4 gives 3, 3, 3 and 1 rows; of 5 over 4 it gives 2,
// 2, 1 and none; ZeRO-3 shards 30 elements as 8, 8, 8, 6.
func TestRanks(t *testing.T) {
	for _, c := range []struct {
		rule   shard.Rule
		shape  []int64
		degree int64
		local  []int64
		ranks  []int64
	}{
		{shard.Rows, []int64{10, 3}, 4, []int64{3, 3}, []int64{9, 9, 9, 3}},
		{shard.Rows, []int64{5}, 4, []int64{2}, []int64{2, 2, 1, 0}},
		{shard.Rows, []int64{8, 2, 2}, 4, []int64{2, 2, 2}, []int64{8, 8, 8, 8}},
		{shard.Rows, []int64{1, 100}, 2, []int64{1, 100}, []int64{100, 0}},
		{shard.Rows, nil, 2, []int64{1}, []int64{1, 0}},
		{shard.Rows, []int64{0, 4}, 2, []int64{0, 4}, []int64{0, 0}},
		{shard.Flat, []int64{10, 3}, 4, []int64{8}, []int64{8, 8, 8, 6}},
		{shard.Flat, []int64{5}, 4, []int64{2}, []int64{2, 2, 1, 0}},
	} {
		local, ranks := c.rule.Local(c.shape, c.degree), c.rule.Ranks(c.shape, c.degree)
		if !slices.Equal(local, c.local) || !slices.Equal(ranks, c.ranks) {
			t.Errorf("rule %d, %v over %d: each stores %v, they hold %v, want %v and %v", c.rule, c.shape, c.degree, local, ranks, c.local, c.ranks)
		}
	}
}

// TestRanksAddUp: for any shape the ranks' shards make up the parameter, none larger than stored,
// the first as large as any.
func TestRanksAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		shape := []int64{rng.Int64N(40), rng.Int64N(9), 1 + rng.Int64N(3)}[:rng.IntN(4)]
		degree := 1 + rng.Int64N(17)
		for _, rule := range []shard.Rule{shard.Rows, shard.Flat} {
			numel, stored, sum := product(shape), product(rule.Local(shape, degree)), int64(0)
			ranks := rule.Ranks(shape, degree)
			for r, n := range ranks {
				sum += n
				if n < 0 || n > stored || n > ranks[0] || r > 0 && n > ranks[r-1] {
					t.Fatalf("rule %d, %v over %d: %v of %d stored", rule, shape, degree, ranks, stored)
				}
			}
			if sum != numel || stored*degree < numel {
				t.Fatalf("rule %d, %v over %d: %v add up to %d of %d", rule, shape, degree, ranks, sum, numel)
			}
		}
	}
}

func product(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

const tiny = `{"model_type": "llama", "hidden_size": 10, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
	"num_key_value_heads": 1, "head_dim": 6, "vocab_size": 101, "tie_word_embeddings": `

func graph(t *testing.T, tied string) *modelgraph.Graph {
	t.Helper()
	g := fixtures.Must(hf.FromConfig("config.json", []byte(tiny+tied+"}")))(t)
	return g
}

// TestShards: blocks are units, the rest is the root's in the order that
// FSDP2 lists it, and a tied head is its embedding's.
func TestShards(t *testing.T) {
	for tied, root := range map[string][]string{
		"true":  {"model.embed_tokens.weight", "model.norm.weight"},
		"false": {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"},
	} {
		g := graph(t, tied)
		s := shard.Of(g, &costmodel.Workload{Strategy: costmodel.HSDP, World: 8, ShardDegree: 4})
		var names []string
		for _, u := range s.Units {
			names = append(names, u.Name)
		}
		if want := []string{shard.Root, "model.layers.0", "model.layers.1"}; s.Degree != 4 || !slices.Equal(names, want) {
			t.Errorf("tied %s: degree %d, units %q, want %q", tied, s.Degree, names, want)
		}
		if !slices.Equal(s.Units[0].Params, root) {
			t.Errorf("tied %s: the root has %q, want %q", tied, s.Units[0].Params, root)
		}
		// The norm is the last that DecoderLayer registers, so its gradient is the last that is copied.
		if got := s.Units[1].Params; len(got) != 9 || got[8] != "model.layers.0.post_attention_layernorm.weight" {
			t.Errorf("a block has %q", got)
		}
		addUp(t, g, s)
		if got, want := fmt.Sprint(s.Params[0]), fmt.Sprintf("{%s 1010 1040 [260 260 260 230]}", root[0]); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestZero3: the flattened parameters, unit by unit.
func TestZero3(t *testing.T) {
	g := graph(t, "true")
	s := shard.Of(g, &costmodel.Workload{Strategy: costmodel.Zero3, World: 4, ShardDegree: 4})
	addUp(t, g, s)
	const want = "{model.embed_tokens.weight 1010 1012 [253 253 253 251]}"
	if got := fmt.Sprint(s.Params[0]); len(s.Units) != 4 || got != want {
		t.Errorf("%d units, %s, want %s", len(s.Units), got, want)
	}
}

// addUp checks units and ranks against the model's parameters, each once.
func addUp(t *testing.T, g *modelgraph.Graph, s *costmodel.Shards) {
	t.Helper()
	seen := map[string]bool{}
	var units, params int64
	for _, u := range s.Units {
		units += u.Numel
		for _, name := range u.Params {
			if seen[name] {
				t.Errorf("%q is in two units", name)
			}
			seen[name] = true
		}
	}
	for _, p := range s.Params {
		var owned int64
		for _, n := range p.RankNumel {
			owned += n
		}
		if owned != p.Numel || p.PaddedNumel < p.Numel || p.PaddedNumel%s.Degree != 0 || !seen[p.Name] {
			t.Errorf("%+v: the ranks hold %d", p, owned)
		}
		params += p.Numel
	}
	if units != g.ParamCount() || params != g.ParamCount() || len(seen) != len(s.Params) {
		t.Errorf("%d elements in units, %d in parameters, the model has %d", units, params, g.ParamCount())
	}
}

// TestGroups: a layer of a torch.nn.Sequential is no block, one without
// parameters no group; other strategies have no shards.
func TestGroups(t *testing.T) {
	weight := fixtures.Must(modelgraph.NewTensor("weight", modelgraph.BF16, 4, 4))(t)
	declared := modelgraph.NotDeclared()
	declared.ParamsBytes = 64
	g, err := modelgraph.New("m", []modelgraph.Layer{
		{Name: "merger.mlp.0", Op: modelgraph.Linear{In: 4, Out: 4}, Params: []modelgraph.Tensor{weight}},
		{Name: "h.0", Declared: &declared},
		{Name: "rotary", Op: modelgraph.Rotary{HeadDim: 2}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []shard.Group{{Name: shard.Root, Units: []int{0, 2}, Root: true}, {Name: "h.0", Units: []int{1}}}
	if got := shard.Groups(g, shard.Ends{}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if s := shard.Of(g, &costmodel.Workload{Strategy: costmodel.DDP, World: 4}); s != nil {
		t.Errorf("ddp: %+v", s)
	}
}

// TestEnds: Accelerate's groups of the embedding and the head (accelerate 1.15,
// fsdp2_prepare_model), with tied weights and under PEFT.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		tied string
		lora int64
		want string
	}{
		{"false", 0, "[model.embed_tokens model.layers.0 model.layers.1 lm_head*]"},
		{"true", 0, "[lm_head* model.layers.0 model.layers.1]"},
		{"false", 8, "[root model.embed_tokens model.layers.0 model.layers.1 lm_head*]"}, // the norm is the root's
	} {
		g := graph(t, c.tied)
		var names []string
		for _, group := range shard.Groups(g, shard.EndsOf(&costmodel.Workload{Preset: "transformers", LoRARank: c.lora})) {
			if group.Tail {
				group.Name += "*"
			}
			names = append(names, group.Name)
		}
		if got := fmt.Sprint(names); got != c.want {
			t.Errorf("tied %s, LoRA %d: %s, want %s", c.tied, c.lora, got, c.want)
		}
	}
}

// TestJoined: FSDP1 shards all parameters of a group as one, so the first rank has the first of
// them whole; all shards of a group are equal.
func TestJoined(t *testing.T) {
	for preset, units := range map[string]int{"lightning": 1, "lightning:blocks": 3} {
		g := graph(t, "true")
		s := shard.Of(g, &costmodel.Workload{Preset: preset, Strategy: costmodel.FSDP, World: 4, ShardDegree: 4})
		if len(s.Units) != units {
			t.Errorf("%s: %d units, want %d", preset, len(s.Units), units)
		}
		at := 0
		for _, unit := range s.Units {
			sums := make([]int64, 4)
			for range unit.Params {
				for rank, numel := range s.Params[at].RankNumel {
					sums[rank] += numel
				}
				at++
			}
			part := shard.Share(unit.Numel, 4)
			if want := []int64{part, part, part, unit.Numel - 3*part}; !slices.Equal(sums, want) {
				t.Errorf("%s, %s: the ranks hold %v, want %v", preset, unit.Name, sums, want)
			}
		}
	}
}
