package recipe_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

func builtIn(tb testing.TB, name string) *modelgraph.Graph {
	tb.Helper()
	graph, err := load.Model(name, load.Options{BuiltIn: fixtures.Models(), Transformers: "5.20"}) // gemma2 has causal kernels there, as devmap's engine
	if err != nil {
		tb.Fatal(err)
	}
	return graph
}

func of(tb testing.TB, graph *modelgraph.Graph, workload costmodel.Workload) *recipe.Model {
	tb.Helper()
	model, err := recipe.Of(graph, &workload)
	if err != nil {
		tb.Fatal(err)
	}
	return model
}

// sized is the unit of this name.
func sized(tb testing.TB, model *recipe.Model, name string) *recipe.Unit {
	tb.Helper()
	for i := range model.Units {
		if model.Units[i].Name == name {
			return &model.Units[i]
		}
	}
	tb.Fatalf("no unit %q", name)
	return nil
}

// TestSaved: a block's bytes a token from forward to backward in bf16, by hand: C hidden, Q and K
// the widths of queries and keys, F inner width, H query heads; element counts by two, numbers a
// row in fp32.
func TestSaved(t *testing.T) {
	for _, c := range []struct {
		model, block string
		want         int64
	}{
		// 2(C + Q + 2K + Q + C + 2F) + 4(2 + H)
		{"llama-3.1-8b", "model.layers.7", 2*(4096+4096+2*1024+4096+4096+2*14336) + 4*(2+32)}, // 94,344
		{"llama-3.1-405b", "model.layers.7", 2*(16384+16384+2*1024+16384+16384+2*53248) + 4*(2+128)},
		{"mistral-7b-v0.1", "model.layers.7", 94344},
		{"qwen2.5-7b", "model.layers.7", 2*(3584+3584+2*512+3584+3584+2*18944) + 4*(2+28)},
		// q and k before their norms, which are cheap to recompute.
		{"qwen3-8b", "model.layers.7", 2*(4096+4096+2*1024+4096+4096+2*12288) + 4*(2+32)},
		{"gemma-2b", "model.layers.7", 2*(2048+2048+2*256+2048+2048+2*16384) + 4*(2+8)},
		// and the two results that are normed before they are added.
		{"gemma-2-9b", "model.layers.7", 2*(3584+4096+2*2048+4096+3584+2*14336+2*3584) + 4*(4+16)},
		{"gemma-3-27b", "model.language_model.layers.7", 2*(5376+4096+2*2048+4096+5376+2*21504+2*5376) + 4*(4+32)},
		{"phi-3-mini", "model.layers.7", 2*(3072+3*3072+3072+3072+2*8192) + 4*(2+32)},
		// F once, as nothing is gated; a mean and a deviation a norm.
		{"gpt2", "transformer.h.7", 2*(768+3*768+768+768+3072) + 4*(4+12)},
	} {
		workload := costmodel.Workload{Mode: costmodel.Train, Batch: 4, MicroBatches: 2, Seq: 512, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW}
		tokens := int64(2 * 512)
		unit := sized(t, of(t, builtIn(t, c.model), workload), c.block)
		if got := unit.Input + unit.Saved; got != c.want*tokens {
			t.Errorf("%s: %d bytes a token, want %d", c.model, got/tokens, c.want)
		}
		if unit.Input != unit.Output {
			t.Errorf("%s: input %d, and what blocks hand on is %d", c.model, unit.Input, unit.Output)
		}
	}
}

// TestRegions: other figures of Llama 3.1 8B's block and head, by hand, for 1,024 tokens.
func TestRegions(t *testing.T) {
	const tokens, C, K, F, V = 1024, 4096, 1024, 14336, 128256
	workload := costmodel.Workload{Mode: costmodel.Train, Batch: 4, MicroBatches: 2, Seq: 512, Precision: costmodel.BF16Mixed, Optimizer: costmodel.AdamW}
	graph := builtIn(t, "llama-3.1-8b")
	weights := int64(2*C*C + 2*C*K + 3*C*F + 2*C)
	train := of(t, graph, workload)
	block := sized(t, train, "model.layers.0")
	want := costmodel.Regions{
		Weights: 2 * weights, Grads: 4 * weights, Master: 4 * weights, State: 8 * weights, Tensors: 9,
		Input: 2 * C * tokens, Saved: (94344 - 2*C) * tokens, Output: 2 * C * tokens,
		Forward:  2 * F * tokens,         // the gated product; the normed stream is smaller
		Backward: 2 * (2*F + C) * tokens, // the gradients of gate and up, and of their input
	}
	compare(t, "block", &block.Regions, &want)
	head := sized(t, train, "lm_head")
	const part = 8064 // 16 parts of 128,256, of 8,016 rounded up to 128
	compare(t, "head", &head.Regions, &costmodel.Regions{
		Weights: 2 * V * C, Grads: 4 * V * C, Master: 4 * V * C, State: 8 * V * C, Tensors: 1,
		Feed: 4 * 4 * 512, Input: 2 * C * tokens, Saved: 4 * tokens, Result: 256,
		Forward: (2*part + 4*3) * tokens, Backward: (2*part+4*C)*tokens + 256,
	})
	embedding := sized(t, train, "model.embed_tokens")
	compare(t, "embedding", &embedding.Regions, &costmodel.Regions{
		Weights: 2 * V * C, Grads: 4 * V * C, Master: 4 * V * C, State: 8 * V * C, Tensors: 1,
		Feed: 4 * 4 * 512, Output: 2 * C * tokens, Backward: 16 * tokens,
	})
	workload.Recompute = costmodel.RecomputeFull
	again := want
	again.Saved, again.Remade = 0, want.Saved
	again.Forward += want.Saved
	again.Backward += want.Saved
	compare(t, "block, recomputed", &sized(t, of(t, graph, workload), "model.layers.0").Regions, &again)
}

// TestGenerate: caches, tokens and results, by hand: Mistral's window is 4,096,
// so that its ring is shorter than prompt and answer.
func TestGenerate(t *testing.T) {
	const batch, seq, fresh, C, K, V = 4, 5000, 100, 4096, 1024, 32000
	workload := costmodel.Workload{Mode: costmodel.Infer, Batch: batch, MicroBatches: 2, Seq: seq, NewTokens: fresh, Precision: costmodel.BF16True}
	model := of(t, builtIn(t, "mistral-7b-v0.1"), workload)
	block := sized(t, model, "model.layers.0")
	if want := int64(batch * 4096 * 2 * K * 2); block.Cache != want {
		t.Errorf("cache %d, want %d", block.Cache, want)
	}
	if block.Token != 2*2*C || block.Output != 2*seq*2*C {
		t.Errorf("token %d, output %d, want %d and %d", block.Token, block.Output, 2*2*C, 2*seq*2*C)
	}
	// A decoded token reads every weight, and its visible keys and values; the rest is little.
	if read, got := float64(block.Weights+2*4096*2*K*2), block.Code.Decode.Work.Traffic; got < read || got > 1.01*read {
		t.Errorf("a decoded token moves %g bytes, want %g and a little more", got, read)
	}
	head := sized(t, model, "lm_head")
	if want := int64(2*2*V + 256); head.Result != want {
		t.Errorf("result %d, want %d: logits of the last position, and ids", head.Result, want)
	}
	workload.Mode, workload.NewTokens, workload.Seq = costmodel.Infer, 0, 512
	once := of(t, builtIn(t, "mistral-7b-v0.1"), workload)
	if block := sized(t, once, "model.layers.0"); block.Cache != 0 || block.Input != 0 || block.Saved != 0 || block.Decode != 0 {
		t.Errorf("one forward keeps %+v", block.Regions)
	}
	if want, head := int64(2*512*2*V), sized(t, once, "lm_head"); head.Result != want {
		t.Errorf("result %d, want %d: logits of every position", head.Result, want)
	}
}

func compare(t *testing.T, what string, got, want *costmodel.Regions) {
	t.Helper()
	for _, figure := range []struct {
		name      string
		got, want int64
	}{
		{"weights", got.Weights, want.Weights},
		{"grads", got.Grads, want.Grads},
		{"master", got.Master, want.Master},
		{"state", got.State, want.State},
		{"cache", got.Cache, want.Cache},
		{"feed", got.Feed, want.Feed},
		{"input", got.Input, want.Input},
		{"saved", got.Saved, want.Saved},
		{"remade", got.Remade, want.Remade},
		{"forward", got.Forward, want.Forward},
		{"backward", got.Backward, want.Backward},
		{"decode", got.Decode, want.Decode},
		{"output", got.Output, want.Output},
		{"token", got.Token, want.Token},
		{"result", got.Result, want.Result},
		{"tensors", got.Tensors, want.Tensors},
	} {
		if figure.got != figure.want {
			t.Errorf("%s: %s is %d, want %d", what, figure.name, figure.got, figure.want)
		}
	}
}

// TestProducts: forward's matrix products equal the cost model's for other engines. Backward's are
// twice as many, and the head makes its logits once more. Attention takes 2 products over every
// visible pair of a query and a key, and 7 in backward.
func TestProducts(t *testing.T) {
	workload := costmodel.Workload{Mode: costmodel.Train, Batch: 4, MicroBatches: 2, Seq: 512, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW}
	for _, name := range []string{"llama-3.1-8b", "mistral-7b-v0.1", "qwen2.5-7b", "qwen3-8b", "gemma-2-9b", "gemma-3-27b", "phi-3-mini", "gpt2"} {
		for _, workload.Seq = range []int64{2, 512, 5000} {
			if name == "gpt2" && workload.Seq > 1024 {
				continue
			}
			graph := builtIn(t, name)
			model := of(t, graph, workload)
			for i := range graph.Units {
				work := counted(graph, &graph.Units[i], &workload)
				code := model.Units[i].Code
				got, back := code.Forward.Work, code.Backward.Work
				if products := got.Products + got.Unaligned; products != work.products || back.Products+back.Unaligned != work.back*products {
					t.Errorf("%s, %s: %g FLOPs forward and %g back, want %g and %g times that", name, model.Units[i].Name, products, back.Products, work.products, work.back)
				}
				if got.Attention != 2*work.pairs || back.Attention != 7*work.pairs {
					t.Errorf("%s, %s: attention takes %g FLOPs forward and %g back, want 2 and 7 times %g", name, model.Units[i].Name, got.Attention, back.Attention, work.pairs)
				}
			}
		}
	}
}

// work is a unit's products forward, their factor in backward, and the FLOPs of a product over the
// pairs of its attention.
type work struct{ products, back, pairs float64 }

// counted is counted by the cost model's operations and, pair by pair, here.
func counted(graph *modelgraph.Graph, unit *modelgraph.Unit, workload *costmodel.Workload) work {
	out := work{back: 2}
	for _, k := range unit.Exec {
		layer := &graph.Layers[k]
		if layer.Stream.Kind == modelgraph.Image {
			continue
		}
		shape := ops.Shape{Tokens: 2 * workload.Seq, Length: workload.Seq, Batch: 2, Cache: workload.Seq, Logits: 2 * workload.Seq, Train: true, Precision: workload.Precision}
		cost := ops.Of(layer.Op, &shape)
		forward, _ := ops.Passes(layer.Op, &shape, cost.FLOPs, false)
		out.products += forward.Products + forward.Unaligned
		switch op := layer.Op.(type) {
		case modelgraph.Head:
			out.back = 3
		case modelgraph.Attention:
			for i := range workload.Seq {
				sees := i + 1
				if op.Window > 0 {
					sees = min(sees, op.Window)
				}
				out.pairs += 2 * 2 * float64(sees) * float64(op.Heads*op.HeadDim)
			}
		}
	}
	return out
}
