package recipe_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/modelgraph"
)

// randomChain is a random chain: blocks with norms before, after or around
// their branches, or without, in units of one layer or of a block.
func randomChain(tb testing.TB, random *rand.Rand) *modelgraph.Graph {
	tb.Helper()
	pick := func(values ...int64) int64 { return values[random.IntN(len(values))] }
	yes := func() bool { return random.IntN(2) == 0 }
	dim, vocab := 4*pick(1, 3, 5, 8), pick(7, 40, 130)
	builder := modelgraph.Builder{Name: "drawn", DType: modelgraph.BF16, Bias: yes()}
	stream := builder.Add("embed", modelgraph.Embedding{Vocab: vocab, Dim: dim})
	style := []modelgraph.NormStyle{modelgraph.RMSNorm, modelgraph.LayerNorm, modelgraph.GemmaRMSNorm}[random.IntN(3)]
	norm := func(name, from string) string {
		return builder.Add(name, modelgraph.Norm{Dim: dim, Style: style, Epsilon: 1e-5}, from)
	}
	if yes() {
		stream = builder.Add("positions", modelgraph.Embedding{Vocab: 32, Dim: dim, Index: modelgraph.PositionIndex}, stream)
	}
	inside := false // a unit: only there a branch has norms, as two tensors would cross the border
	branch := func(name string, op modelgraph.Op) {
		before, after := inside && yes(), inside && yes()
		from := stream
		if before {
			from = norm(name+".before", stream)
		}
		if !after {
			stream = builder.Add(name, op, from, stream)
			return
		}
		made := builder.Add(name, op, from)
		stream = builder.Add(name+".after", modelgraph.Norm{Dim: dim, Style: style, Epsilon: 1e-5, Post: true}, made, stream)
	}
	blocks := random.IntN(4)
	for i := range blocks {
		add := func() {
			for j := range 1 + random.IntN(3) {
				kv := pick(1, 2)
				attention := modelgraph.Attention{
					Dim: dim, Heads: kv * pick(1, 3), KVHeads: kv, HeadDim: 2 * pick(1, 4), Rope: yes(), Fused: yes(), Window: pick(0, 0, 3), ScoreCap: float64(pick(0, 30)),
				}
				if yes() {
					attention.QKNorm, attention.QKEpsilon = modelgraph.RMSNorm, 1e-6
				}
				branch(fmt.Sprintf("attention%d_%d", i, j), attention)
				gated := yes()
				branch(fmt.Sprintf("mlp%d_%d", i, j), modelgraph.MLP{Dim: dim, Hidden: pick(3, 12, 20), Gated: gated, Fused: gated && yes(), Activation: "gelu"})
				if yes() {
					stream = norm(fmt.Sprintf("norm%d_%d", i, j), stream)
				}
			}
		}
		if inside = yes(); inside {
			builder.Block(fmt.Sprintf("block%d", i), add)
		} else {
			add()
		}
	}
	builder.Add("head", modelgraph.Head{Dim: dim, Vocab: vocab, SoftCap: yes(), LogitCap: 30}, stream)
	if yes() {
		builder.Tie("embed.weight", "head.weight")
	}
	graph, err := builder.Build()
	if err != nil {
		tb.Fatal(err)
	}
	return graph
}

// TestReplayDrawn is TestReplay on random models and sizes.
func TestReplayDrawn(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 1))
	for range 15 {
		graph := randomChain(t, random)
		parts := int64(1 + random.IntN(3))
		batch, seq := parts*int64(1+random.IntN(2)), int64(1+random.IntN(9))
		for name, workload := range smallWorkloads() {
			workload.Batch, workload.MicroBatches, workload.Seq = batch, parts, seq
			if workload.Mode == costmodel.Train {
				workload.Seq++ // a token alone has no loss
			}
			model, err := recipe.Of(graph, &workload)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for i := range model.Units {
				for _, together := range []bool{false, true} {
					for _, fault := range judge(&model.Units[i], &workload, together) {
						var text bytes.Buffer
						_ = modelgraph.Write(&text, graph)
						t.Fatalf("%s, %s (in place: %v): %s\n%s", name, model.Units[i].Name, together, fault, text.String())
					}
				}
			}
		}
	}
}

// TestPacked: what a scratch takes is at least what lives at once, and not far
// above it.
func TestPacked(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 2))
	var scratch, alive int64
	for range 25 {
		graph := randomChain(t, random)
		for _, workload := range smallWorkloads() {
			model := of(t, graph, workload)
			for i := range model.Units {
				code := model.Units[i].Code
				for _, routine := range []*recipe.Routine{&code.Forward, &code.Backward, &code.Decode} {
					most := alivest(code, routine)
					if routine.Scratch < most {
						t.Fatalf("%s: a scratch of %d, and %d bytes live at once", model.Units[i].Name, routine.Scratch, most)
					}
					scratch, alive = scratch+routine.Scratch, alive+most
				}
			}
		}
	}
	if float64(scratch) > 1.02*float64(alive) {
		t.Errorf("scratches take %d bytes, and at most %d live at once", scratch, alive)
	}
}

// alivest is the most bytes of temporaries that live at one kernel.
func alivest(code *recipe.Code, routine *recipe.Routine) int64 {
	first, last := make(map[int]int), make(map[int]int)
	for i := range routine.Kernels {
		for _, operand := range routine.Kernels[i].Operands {
			if code.Tensors[operand.Tensor].Class != "temporary" {
				continue
			}
			if _, ok := first[operand.Tensor]; !ok {
				first[operand.Tensor] = i
			}
			last[operand.Tensor] = i
		}
	}
	sums := make([]int64, len(routine.Kernels)+1)
	for tensor, i := range first {
		for ; i <= last[tensor]; i++ {
			sums[i] += code.Tensors[tensor].Bytes()
		}
	}
	return slices.Max(sums)
}

// TestAlike: units that share a code would have been given the same one on
// their own, and a unit's code does not depend on the others.
func TestAlike(t *testing.T) {
	graph := builtIn(t, "llama-3.2-1b")
	workload := costmodel.Workload{Mode: costmodel.Train, Batch: 4, MicroBatches: 2, Seq: 64, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW}
	model := of(t, graph, workload)
	first := sized(t, model, "model.layers.0")
	last := sized(t, model, "model.layers.15")
	if first.Code != last.Code || first.Name == last.Name {
		t.Errorf("blocks %q and %q have codes of their own", first.Name, last.Name)
	}
	other := sized(t, of(t, builtIn(t, "llama-3.2-1b"), workload), "model.layers.15")
	if other.Code == last.Code || !slices.Equal(other.Code.Lines(), last.Code.Lines()) {
		t.Error("the code of a block is not the same the second time")
	}
}
