package layers_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// TestSmallStates: bitsandbytes keeps tensors of fewer than 4096 elements in 32
// bits (optim/optimizer.py, Optimizer2State.init_state: numel < min_8bit_size).
func TestSmallStates(t *testing.T) {
	for n, want := range map[int64]int64{4095: 8 * 4095, 4096: 2 * (4096 + 4*16), 4097: 2 * (4097 + 4*17)} {
		if got := stateOf(value.AdamW8bit, n); got != want {
			t.Errorf("%d elements: %d B, want %d", n, got, want)
		}
	}
}

// TestAdafactorShapes: Transformers' Adafactor (optimization.py, _get_options and step) factors
// tensors of two dimensions or more: means over the last and over the last but one, in fp32; a
// vector has all moments.
func TestAdafactorShapes(t *testing.T) {
	for _, c := range []struct {
		shape []int64
		want  int64
	}{
		{[]int64{7}, 4 * 7},
		{[]int64{5, 7}, 4 * (5 + 7)},
		{[]int64{3, 5, 7}, 4 * (3*5 + 3*7)}, // experts, stacked
		{[]int64{2, 3, 5, 7}, 4 * (2*3*5 + 2*3*7)},
		{[]int64{1, 7}, 4 * (1 + 7)},
	} {
		if got := stateOf(value.Adafactor, c.shape...); got != c.want {
			t.Errorf("%v: %d B, want %d", c.shape, got, c.want)
		}
	}
}

// stateOf is what an optimizer keeps of one bf16 parameter.
func stateOf(kind string, shape ...int64) int64 {
	numel := int64(1)
	for _, side := range shape {
		numel *= side
	}
	rule := layers.Optimizer{Kind: kind}
	state, _ := rule.State(shape, numel, 2)
	return state
}

// TestAverage: the moving average copies the ops' weights, not the optimizer's master weights.
func TestAverage(t *testing.T) {
	for average, want := range map[int64]int64{0: 2*4*100 + 4*100, 2: 2*4*100 + 2*100} {
		rule := layers.Optimizer{Kind: costmodel.AdamW, EMA: true, Average: average}
		if state, _ := rule.State([]int64{100}, 100, 4); state != want {
			t.Errorf("an average of %d bytes an element: %d B, want %d", average, state, want)
		}
	}
}

// TestOneLargest: an optimizer that steps one parameter after another has the largest one's
// temporaries where one GPU runs the whole step; parts of a model have those of each block.
func TestOneLargest(t *testing.T) {
	graph := fixtures.Must(hf.FromConfig("config.json", []byte(`{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 1000}`)))(t)
	for _, c := range []struct {
		workload costmodel.Workload
		one      bool
	}{
		{costmodel.Workload{Optimizer: value.Muon, OneGPU: true}, true},
		{costmodel.Workload{Optimizer: value.Muon, Strategy: costmodel.DDP, World: 2}, true},
		{costmodel.Workload{Optimizer: value.Muon}, false},
		{costmodel.Workload{Optimizer: value.AdamWForeach, OneGPU: true}, false},
	} {
		c.workload.Mode, c.workload.Batch, c.workload.Seq = costmodel.Train, 1, 64
		workload := fixtures.Must(estimate.Resolve(graph, c.workload))(t)
		table := fixtures.Must(estimate.Table(graph, workload))(t)
		count := 0
		for i := range table.Units {
			if table.Units[i].StepTransient > 0 {
				count++
			}
		}
		if count == 0 || (count == 1) != c.one {
			t.Errorf("%s, one GPU %t, %s: %d units have temporaries", workload.Optimizer, workload.OneGPU, workload.Strategy, count)
		}
	}
}

// TestKinds: every optimizer that can be asked for has a row of its own, and counts as no other.
func TestKinds(t *testing.T) {
	seen := map[[3]float64]string{}
	for _, field := range costmodel.Fields() {
		if field.Name != "optimizer" {
			continue
		}
		for _, kind := range field.Values {
			rule := layers.Optimizer{Kind: kind}
			state, transient := rule.State([]int64{128, 1024}, 128*1024, 2)
			figures := [3]float64{float64(state), float64(transient), rule.Traffic(2)}
			if other, ok := seen[figures]; ok {
				t.Errorf("%s counts as %s does: %v", kind, other, figures)
			}
			seen[figures] = kind
		}
	}
	if len(seen) < 7 {
		t.Errorf("%d optimizers: %v", len(seen), seen)
	}
}

// TestPaged: states of tensors from 100,000 elements on are in unified memory, except the maxima of
// blocks of 256; smaller ones are as without pages.
func TestPaged(t *testing.T) {
	for _, is := range []struct {
		kind        string
		numel, want int64
	}{
		{value.PagedAdamW8bit, 4095, 2 * 4 * 4095}, // fp32 below bitsandbytes' min_8bit_size
		{value.PagedAdamW8bit, 99_999, 2 * (99_999 + 4*391)},
		{value.PagedAdamW8bit, 100_000, 2 * 4 * 391},
		{value.PagedAdamW32bit, 99_999, 2 * 4 * 99_999},
		{value.PagedAdamW32bit, 100_000, 0},
	} {
		rule := layers.Optimizer{Kind: is.kind}
		if got, _ := rule.State([]int64{is.numel}, is.numel, 2); got != is.want {
			t.Errorf("%s of %d elements: %d B, want %d", is.kind, is.numel, got, is.want)
		}
	}
}
