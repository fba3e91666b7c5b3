package replay

import (
	"fmt"
	"testing"
)

// quiet hooks take every gradient and count the modules.
type quiet struct {
	run     *Run
	entered map[string]int
	grads   int
}

func (hooks *quiet) Enter(layer int, module string, backward bool) {
	hooks.entered[fmt.Sprint(layer, module, backward)]++
}

func (hooks *quiet) Leave(layer int, module string, backward bool) {
	hooks.entered[fmt.Sprint(layer, module, backward)]--
}

func (hooks *quiet) Gradient(weight *Weight) {
	hooks.grads++
	hooks.run.Drop(weight.Grad)
	weight.Grad = nil
}

func (*quiet) Block(int, bool, bool) {}
func (*quiet) Backward()             {}

// decoder is a small one of two blocks.
func decoder(trained, tied, biased bool, rank int64, by Kernel) *Model {
	linear := func(module string, in, out int64) *Linear {
		made := &Linear{Module: module, In: in, Out: out, Weight: &Weight{Numel: in * out, Trained: trained}, Rank: rank}
		if biased {
			made.Bias = &Weight{Numel: out, Trained: trained}
		}
		if rank > 0 {
			made.Down, made.Up = &Weight{Numel: rank * in, Trained: true}, &Weight{Numel: rank * out, Trained: true}
		}
		return made
	}
	norm := func() *Norm { return &Norm{Width: 512, Rows: 1, Weight: &Weight{Numel: 512, Trained: trained}} }
	model := &Model{
		Tokens: 4096, Logits: 4096, Batch: 2, Length: 2048, Width: 512, Element: 2, Adapter: 2, Rotary: 2048 * 64,
		Embedding: Embedding{Vocab: 3000, Weight: &Weight{Numel: 3000 * 512, Trained: trained}}, Norm: *norm(), NormIndex: 9,
		Head: Head{Vocab: 3000, Linear: &Linear{In: 512, Out: 3000, Weight: &Weight{Numel: 3000 * 512, Trained: trained}}}, HeadIndex: 10,
	}
	if tied {
		model.Head.Linear.Weight = model.Embedding.Weight
	}
	for block := range 2 {
		attention := &Attention{
			Query: linear("q", 512, 512), Key: linear("k", 512, 128), Value: linear("v", 512, 128), Output: linear("o", 512, 512),
			Heads: 8, KVHeads: 2, HeadDim: 64, Rope: true, By: by, Masked: by == Efficient,
		}
		mlp := &MLP{Hidden: 2048, Gate: linear("gate", 512, 2048), Up: linear("up", 512, 2048), Down: linear("down", 2048, 512)}
		at := 1 + 4*block
		model.Blocks = append(model.Blocks, Block{Halves: [2]Half{
			{Norm: norm(), NormIndex: at, Body: attention, BodyIndex: at + 1},
			{Norm: norm(), NormIndex: at + 2, Body: mlp, BodyIndex: at + 3},
		}})
	}
	return model
}

// TestForward: a step makes each gradient once, leaves every module that it enters, and keeps
// nothing; recomputing takes less. So in all combinations of training, recomputation and kernels.
func TestForward(t *testing.T) {
	for _, trained := range []bool{true, false} {
		for _, tied := range []bool{true, false} {
			for _, by := range []Kernel{Flash, Efficient, Math} {
				for _, rank := range []int64{0, 8} {
					if trained == (rank > 0) { // adapters have a frozen base
						continue
					}
					peaks := make(map[bool]int64)
					for _, recompute := range []bool{false, true} {
						model := decoder(trained, tied, by == Flash, rank, by)
						model.Recompute = recompute
						name := fmt.Sprintf("trained %t, tied %t, kernel %d, rank %d, recompute %t", trained, tied, by, rank, recompute)
						peaks[recompute] = step(t, name, model)
					}
					if peaks[true] >= peaks[false] {
						t.Errorf("rank %d, kernel %d: %d bytes recomputed, %d not", rank, by, peaks[true], peaks[false])
					}
				}
			}
		}
	}
}

// step runs two steps and is the peak of the second.
func step(t *testing.T, name string, model *Model) int64 {
	t.Helper()
	run := NewRun(1 << 20)
	for range 2 {
		hooks := &quiet{run: run, entered: make(map[string]int)}
		run.Cache.ResetPeaks()
		model.Forward(run, hooks)()
		if run.Cache.Allocated != 2<<20 { // the workspaces
			t.Errorf("%s: %d bytes are still allocated", name, run.Cache.Allocated)
		}
		want := model.gradients()
		if hooks.grads != want {
			t.Errorf("%s: %d gradients, want %d", name, hooks.grads, want)
		}
		for module, open := range hooks.entered {
			if open != 0 && !model.Recompute { // which stops in the middle of a module
				t.Errorf("%s: module %s was entered %d times more than left", name, module, open)
			}
		}
	}
	return run.Cache.PeakAllocated
}

// gradients counts the parameters that get one.
func (model *Model) gradients() int {
	count := 0
	add := func(weights ...*Weight) {
		for _, weight := range weights {
			if weight != nil && weight.Trained {
				count++
			}
		}
	}
	linears := func(all ...*Linear) {
		for _, linear := range all {
			add(linear.Weight, linear.Bias, linear.Down, linear.Up)
		}
	}
	add(model.Embedding.Weight, model.Norm.Weight)
	if model.Head.Linear.Weight != model.Embedding.Weight {
		add(model.Head.Linear.Weight)
	}
	for i := range model.Blocks {
		halves := &model.Blocks[i].Halves
		for k := range halves {
			if norm, ok := halves[k].Norm.(*Norm); ok {
				add(norm.Weight)
			}
			switch body := halves[k].Body.(type) {
			case *Attention:
				linears(body.Query, body.Key, body.Value, body.Output)
			case *MLP:
				linears(body.Gate, body.Up, body.Down)
			}
		}
	}
	return count
}

// TestInfer: a forward without gradients leaves the workspace, keys and values, and the caller's
// logits; the next one joins its own to them.
func TestInfer(t *testing.T) {
	model := decoder(true, false, false, 0, Flash)
	model.KeepsLogits, model.Caches = true, true
	run := NewRun(1 << 20)
	hooks := &quiet{run: run, entered: make(map[string]int)}
	model.Infer(run, hooks, model.Length)
	logits, cached := 3000*model.Tokens*model.Element, 2*2*128*model.Tokens*model.Element
	if want := 1<<20 + logits + cached; run.Cache.Allocated-run.Cache.Rests != want {
		t.Errorf("%d bytes are allocated, want %d", run.Cache.Allocated, want)
	}
	run.Drop(run.Outputs...)
	next := *model
	next.Tokens, next.Logits, next.Length, next.KeepsLogits = 2, 2, 1, false
	next.Infer(run, hooks, 1)
	if want := 1<<20 + cached + 2*2*128*2*model.Element; run.Cache.Allocated-run.Cache.Rests != want {
		t.Errorf("%d bytes are allocated after a token, want %d", run.Cache.Allocated, want)
	}
}

// TestArrives: a GPU with blocks fed from another keeps nothing after a step, recomputed or not.
func TestArrives(t *testing.T) {
	for _, recompute := range []bool{false, true} {
		model := decoder(true, false, false, 0, Flash)
		model.Recompute, model.Copies, model.Embedding.Weight, model.Norm.Weight, model.Head.Linear = recompute, true, nil, nil, nil
		model.Blocks[0].Arrives, model.Blocks[1].Leaves = true, true
		run := NewRun(1 << 20)
		model.Forward(run, &quiet{run: run, entered: make(map[string]int)})()
		if run.Cache.Allocated != 2<<20 {
			t.Errorf("recompute %t: %d bytes are still allocated", recompute, run.Cache.Allocated)
		}
	}
}
