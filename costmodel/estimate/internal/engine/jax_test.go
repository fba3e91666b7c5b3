package engine

import (
	"errors"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

func jaxWork() costmodel.Workload {
	return costmodel.Workload{
		Mode: costmodel.Train, Strategy: costmodel.FSDP, Runtime: value.JAX, World: 4, ShardDegree: 4, MemFraction: JAXFraction,
		Batch: 1, MicroBatches: 1, Precision: costmodel.FP32True, StoredTypes: true, Optimizer: costmodel.AdamW,
	}
}

// jaxTree is a tree of one large array, a small one, and a frozen one of 16 bits.
func jaxTree(t *testing.T) *modelgraph.Graph {
	t.Helper()
	array := func(name string, dtype modelgraph.DType, frozen bool, shape ...int64) modelgraph.Layer {
		tensor := fixtures.Must(modelgraph.NewTensor("w", dtype, shape...))(t)
		tensor.Frozen = frozen
		return modelgraph.Layer{Name: name, Op: modelgraph.Opaque{}, Params: []modelgraph.Tensor{tensor}}
	}
	graph, err := modelgraph.New("tree", []modelgraph.Layer{
		array("large", modelgraph.F32, false, 2, 1024, 1024), array("small", modelgraph.F32, false, 512, 512), array("frozen", modelgraph.BF16, true, 2048, 2048),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return graph
}

// TestJAX: each GPU has its shard of sharded arrays, AdamW's two states of trained ones, an average
// of all, and three counters.
func TestJAX(t *testing.T) {
	const large, small, frozen = 2 << 20, 1 << 20, 2 << 20 // of a GPU: a quarter, whole, a quarter
	for name, is := range map[string]struct {
		change                func(*costmodel.Workload)
		params, states, grads int64
	}{
		"cut":      {func(*costmodel.Workload) {}, large + small + frozen, 2*(large+small) + 12, large + small},
		"averaged": {func(w *costmodel.Workload) { w.EMA = true }, large + small + frozen, 3*(large+small) + frozen + 12, large + small},
		"whole":    {func(w *costmodel.Workload) { w.ShardDegree = 1 }, 4*large + small + 4*frozen, 2*(4*large+small) + 12, 4*large + small},
		"momentum": {func(w *costmodel.Workload) { w.Optimizer = value.SGDMomentum }, large + small + frozen, large + small + 8, large + small},
		"plain":    {func(w *costmodel.Workload) { w.Optimizer = costmodel.SGD }, large + small + frozen, 8, large + small},
		"loaded":   {func(w *costmodel.Workload) { w.Mode = costmodel.Load }, large + small + frozen, 0, 0},
		"served":   {func(w *costmodel.Workload) { w.Mode = costmodel.Infer }, 2 * (2<<20 + 1<<18 + 4<<20), 0, 0},
	} {
		w := jaxWork()
		is.change(&w)
		model := fixtures.Must(layers.New(jaxTree(t), w, jax{}.Rules(&w)))(t)
		table := &costmodel.Table{Workload: w}
		table.Units, _ = layers.Units(model)
		if err := (jax{}).Regions(model, table); err != nil {
			t.Fatal(err)
		}
		var params, states, grads int64
		for i := range table.Units {
			unit := &table.Units[i]
			params, states = params+unit.Params, states+unit.OptimizerState
			for k := range unit.Layers {
				grads += unit.Layers[k].Grads
			}
		}
		if params != is.params || states != is.states || grads != is.grads || table.Pool != JAXFraction {
			t.Errorf("%s: %d parameters, %d states, %d gradients, want %d, %d, %d; a pool of %v", name, params, states, grads, is.params, is.states, is.grads, table.Pool)
		}
	}
}

// TestJAXRefuses: what OpenPI's training has not is refused by its field.
func TestJAXRefuses(t *testing.T) {
	w := jaxWork()
	if err := (jax{}).Refuse(&w); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*costmodel.Workload){
		"shard_degree":  func(w *costmodel.Workload) { w.ShardDegree = 0 },
		"mem_fraction":  func(w *costmodel.Workload) { w.MemFraction = 1.5 },
		"precision":     func(w *costmodel.Workload) { w.StoredTypes = false },
		"lora_rank":     func(w *costmodel.Workload) { w.LoRARank = 8 },
		"quantize":      func(w *costmodel.Workload) { w.Quantize = value.NF4 },
		"new_tokens":    func(w *costmodel.Workload) { w.NewTokens = 8 },
		"micro_batches": func(w *costmodel.Workload) { w.MicroBatches = 2 },
		"optimizer":     func(w *costmodel.Workload) { w.Optimizer = value.Muon },
	} {
		w := jaxWork()
		change(&w)
		var fault *costmodel.FieldError
		if err := (jax{}).Refuse(&w); !errors.As(err, &fault) || fault.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
