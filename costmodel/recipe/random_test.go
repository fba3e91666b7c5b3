package recipe_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestReplayRandom is TestReplay on random models and sizes.
func TestReplayRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 1))
	for range 15 {
		graph := chainOf(t, random)
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

// TestPacked: a scratch is at least the bytes alive at once, and not far above.
func TestPacked(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 2))
	var scratch, alive int64
	for range 25 {
		graph := chainOf(t, random)
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

// TestAlike: units that share a code would get the same one alone, independent of others.
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
