package engine

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// TestTable checks that each strategy has an engine under each of its runtimes, and no other pair
// has one; the error names the field.
func TestTable(t *testing.T) {
	pairs := 0
	for _, strategy := range append(costmodel.Strategies(), "", costmodel.Auto, "tensor") {
		traits := strategy.Traits()
		for _, runtime := range []string{value.Accelerate, value.Torch, value.Lightning, value.DeepSpeed, costmodel.Devmap, value.JAX, value.Megatron, value.Torchtitan, ""} {
			has := false
			for _, r := range traits.Runtimes {
				has = has || r == runtime
			}
			found, err := Of(&costmodel.Workload{Strategy: strategy, Runtime: runtime})
			var fault *costmodel.FieldError
			switch {
			case has && (err != nil || found == nil):
				t.Errorf("%s under %s: %v", strategy, runtime, err)
			case has:
				pairs++
			case !errors.As(err, &fault):
				t.Errorf("%q under %q is taken for %T", strategy, runtime, found)
			case len(traits.Runtimes) == 0 && (fault.Field != "strategy" || fault.Value != string(strategy)),
				len(traits.Runtimes) > 0 && (fault.Field != "runtime" || fault.Value != runtime):
				t.Errorf("%q under %q: fault of %s %q", strategy, runtime, fault.Field, fault.Value)
			}
		}
	}
	if pairs != len(engines) {
		t.Errorf("%d engines for %d strategies under their runtimes", len(engines), pairs)
	}
}

// workloads are the cases for every engine below: training and inference, one and several
// micro-batches, types, adapters, and recomputation.
func workloads(pair key) []costmodel.Workload {
	plain := costmodel.Workload{
		Strategy: pair.strategy, Runtime: pair.runtime, Mode: costmodel.Train, Batch: 4, MicroBatches: 1, Seq: 32, TargetSeq: 32,
		Precision: costmodel.BF16True, Optimizer: costmodel.AdamW, World: 4, ShardDegree: 4,
	}
	out := []costmodel.Workload{plain}
	for _, change := range []func(*costmodel.Workload){
		func(w *costmodel.Workload) { w.MicroBatches = 4 },
		func(w *costmodel.Workload) { w.Precision = costmodel.BF16Mixed },
		func(w *costmodel.Workload) { w.Precision, w.StoredTypes = costmodel.FP32True, true },
		func(w *costmodel.Workload) { w.Recompute = costmodel.RecomputeFull },
		func(w *costmodel.Workload) { w.EMA, w.Optimizer = true, value.Muon },
		func(w *costmodel.Workload) { w.LoRARank, w.LoRATargets = 8, []string{"q_proj", "down_proj"} },
		func(w *costmodel.Workload) { w.Mode, w.NewTokens = costmodel.Infer, 0 },
	} {
		w := plain
		change(&w)
		if pair.runtime == costmodel.Devmap && (w.EMA || w.LoRARank > 0) {
			continue // TestDevmapRefuses
		}
		out = append(out, w)
	}
	return out
}

// TestConformance asks the same of every engine of the table.
func TestConformance(t *testing.T) {
	const config = `{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 64, "torch_dtype": "bfloat16", "tie_word_embeddings": %t}`
	for pair, engine := range engines {
		if pair.runtime == value.Megatron || pair.runtime == value.Torchtitan { // TestMegatronRows; fp32 weights with products of 16 bits
			continue
		}
		if pair.runtime == value.JAX { // whose arrays keep their types, and are cut by another rule: TestJAX
			continue
		}
		for _, tied := range []bool{false, true} {
			g := fixtures.Must(hf.FromConfig("config.json", fmt.Appendf(nil, config, tied)))(t)
			for _, w := range workloads(pair) {
				name := fmt.Sprintf("%s/%s/tied=%t/%s/%d/%s/lora=%d/%s", pair.strategy, pair.runtime, tied, w.Mode, w.MicroBatches, w.Precision, w.LoRARank, w.Recompute)
				t.Run(name, func(t *testing.T) { conforms(t, engine, g, w) })
			}
		}
	}
}

// conforms checks one engine against the cost model's assumptions.
func conforms(t *testing.T, engine Engine, g *modelgraph.Graph, w costmodel.Workload) {
	t.Helper()
	var err error
	if w.LoRARank > 0 {
		if w.LoRAPrecision, err = engine.Adapters(&w); err != nil {
			t.Fatalf("its own type of adapters is refused: %v", err)
		}
		if again, err := engine.Adapters(&w); err != nil || again != w.LoRAPrecision {
			t.Errorf("adapters are %s, then %s (%v)", w.LoRAPrecision, again, err)
		}
	}
	if err := engine.Refuse(&w); err != nil {
		t.Fatalf("refused: %v", err)
	}
	asked := w
	rules := engine.Rules(&w)
	if ops.ComputeBytes(rules.Compute) != ops.ComputeBytes(w.Precision) {
		t.Errorf("products of %s in %s", w.Precision, rules.Compute)
	}
	if cast := w.Strategy.Traits().ZeroStage > 0 || w.Runtime == costmodel.Devmap; ops.MixedPrecision(rules.Compute) != (ops.MixedPrecision(w.Precision) && !cast) { // else autocast
		t.Errorf("%s runs as %s", w.Precision, rules.Compute)
	}
	if rules.Cut != w.Strategy.Traits().Sharded {
		t.Errorf("cut is %t", rules.Cut)
	}
	first, second := finished(t, engine, g, w, rules), finished(t, engine, g, w, rules)
	if first.Marks != nil { // a function equals none
		units := make([]int, len(first.Units))
		for i := range units {
			units[i] = i
		}
		if !reflect.DeepEqual(first.Marks(units, true), second.Marks(units, true)) {
			t.Error("the same requests have two pools")
		}
		first.Marks, second.Marks = nil, nil
	}
	if !reflect.DeepEqual(first, second) || !reflect.DeepEqual(w, asked) {
		t.Error("the same workload has two tables, or was changed")
	}
	checkTable(t, g, first, rules)
}

func finished(t *testing.T, engine Engine, g *modelgraph.Graph, w costmodel.Workload, rules layers.Rules) *costmodel.Table {
	t.Helper()
	model := fixtures.Must(layers.New(g, w, rules))(t)
	table := &costmodel.Table{Workload: w}
	table.Units, _ = layers.Units(model)
	engine.Finish(model, table)
	if err := engine.Regions(model, table); err != nil {
		t.Fatal(err)
	}
	return table
}

// checkTable checks that a table contains all of the model, and nothing negative.
func checkTable(t *testing.T, g *modelgraph.Graph, table *costmodel.Table, rules layers.Rules) {
	t.Helper()
	w := &table.Workload
	var weights, states int64
	for u := range table.Units {
		unit := &table.Units[u]
		weights, states = weights+unit.Params, states+unit.OptimizerState
		for _, bytes := range []int64{unit.Params, unit.Buffers, unit.OptimizerState, unit.Padding, unit.StatePadding, unit.ResidentGrads, unit.StepTransient, unit.Output, unit.CheckpointedOutput, unit.Entry} {
			if bytes < 0 {
				t.Errorf("%s: a negative size in %+v", unit.Name, unit)
			}
		}
	}
	each := ops.WeightBytes(w.Precision)
	if rules.Masters {
		each = ops.WeightBytes(rules.Compute)
	}
	count := g.ParamCount()
	if w.Strategy.Traits().Staged { // a copy on each stage
		count = 0
		for i := range g.Layers {
			for j := range g.Layers[i].Params {
				count += g.Layers[i].Params[j].Numel
			}
		}
	}
	least := count * each
	if rules.Cut {
		least /= w.ShardDegree
	}
	if w.StoredTypes {
		least /= 2 // the model is stored in bf16
	}
	if weights < least || w.LoRARank == 0 && weights > least+least/50 {
		t.Errorf("%d bytes of weights, the model has %d", weights, least)
	}
	if trains := w.Mode == costmodel.Train; trains != (states > 0) {
		t.Errorf("%d bytes of optimizer states in %s", states, w.Mode)
	}
	if table.OutputBytes > 0 && !w.Strategy.Traits().Sequential || table.Rotary > 0 && !w.Strategy.Traits().Staged || (len(table.Groups) > 0) != w.Strategy.Traits().ByBlock {
		t.Errorf("what the engine holds besides is another strategy's: %+v", table)
	}
}
