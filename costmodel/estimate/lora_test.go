package estimate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

const mixtral = `{"model_type": "mixtral", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
	"num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 1000}`

const tinyLlama = `{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
	"num_key_value_heads": 2, "vocab_size": 1000}`

// lora is a training of adapters of rank 8.
func lora(targets ...string) costmodel.Workload {
	return costmodel.Workload{
		Mode: costmodel.Train, Batch: 4, Seq: 64, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW,
		LoRARank: 8, LoRATargets: targets,
	}
}

func tableOf(t *testing.T, model string, w costmodel.Workload) *costmodel.Table {
	t.Helper()
	g := config(t, model)
	w, err := estimate.Resolve(g, w)
	if err != nil {
		t.Fatal(err)
	}
	table := fixtures.Must(estimate.Table(g, w))(t)
	return table
}

// frozenSums adds up what all units hold throughout, and the gradients.
func frozenSums(table *costmodel.Table) (params, states, grads int64) {
	for i := range table.Units {
		u := &table.Units[i]
		params, states, grads = params+u.Params, states+u.OptimizerState, grads+u.ResidentGrads
		for _, s := range u.Layers {
			grads += s.Grads
		}
	}
	return params, states, grads
}

// TestAdapterStates: r·(in + out) fp32 parameters a target, gradients and two
// states of the same size, and nothing for the base.
func TestAdapterStates(t *testing.T) {
	full := lora()
	full.LoRARank = 0
	base, _, _ := frozenSums(tableOf(t, mixtral, full))
	const qv = 2 * 8 * ((64 + 64) + (64 + 32)) // q_proj and v_proj of two layers
	// And k_proj, o_proj, and of the router and four stacked experts, as PEFT 0.21 has them.
	const all = qv + 2*8*((64+32)+(64+64)) + 2*(2*8*4*(64+2*128)+8*4*(128+64)+8*(64+4))
	for _, c := range []struct {
		targets []string
		want    int64
	}{
		{[]string{"q_proj", "v_proj"}, qv},
		{[]string{"all-linear"}, all},
		{[]string{"w1", "w2", "w3"}, 2 * (2*8*4*(64+2*128) + 8*4*(128+64))}, // Transformers 4's names
		{[]string{"experts.w2", "gate"}, 2 * (8*4*(128+64) + 8*(64+4))},
		{[]string{"model.layers.1.self_attn.q_proj"}, 8 * (64 + 64)},
		{[]string{"self_attn.q_proj"}, 2 * 8 * (64 + 64)},
	} {
		for _, micro := range []int64{1, 4} {
			w := lora(c.targets...)
			w.MicroBatches = micro
			params, states, grads := frozenSums(tableOf(t, mixtral, w))
			if params-base != 4*c.want || states != 8*c.want || grads != 4*c.want {
				t.Errorf("%v, %d micro-batches: %d of parameters, %d of states, %d of gradients; want %d adapter elements", c.targets, micro, params-base, states, grads, c.want)
			}
		}
	}
}

// TestFirstAdapter: nothing is kept before the first adapter, except with checkpoints, since the
// embedding's output then requires a gradient.
func TestFirstAdapter(t *testing.T) {
	w := lora("model.layers.1.self_attn.q_proj")
	if got := tableOf(t, mixtral, w); timeline.Of(&got.Units[1]).Saved != 0 || timeline.Of(&got.Units[2]).Saved == 0 {
		t.Errorf("the first block keeps %d bytes, the second %d", timeline.Of(&got.Units[1]).Saved, timeline.Of(&got.Units[2]).Saved)
	}
	w.Recompute = costmodel.RecomputeFull
	if got := tableOf(t, mixtral, w); got.Units[1].Layers[0].Saved == 0 {
		t.Error("a recomputed first block makes no gradient for its input")
	}
}

// TestFrozenFaults checks the texts of refusals.
func TestFrozenFaults(t *testing.T) {
	g := config(t, mixtral)
	for _, c := range []struct {
		name, flag string
		change     func(*costmodel.Workload)
		says       []string
	}{
		{"a target that is not there", "lora_targets", func(w *costmodel.Workload) { w.LoRATargets = []string{"q_porj"} }, []string{`"q_porj"`, "q_proj"}},
		{"an expert", "lora_targets", func(w *costmodel.Workload) { w.LoRATargets = []string{"gate_up_proj"} }, []string{`"gate_up_proj"`}},
		{"half of gate_up_proj", "lora_targets", func(w *costmodel.Workload) { w.LoRATargets = []string{"w2", "w3"} }, []string{`"w3" needs w1 too`}},
		{"one of two", "lora_targets", func(w *costmodel.Workload) { w.LoRATargets = []string{"q_proj", "up"} }, []string{`"up"`}},
		{"no rank", "lora_targets", func(w *costmodel.Workload) { w.LoRARank = 0 }, []string{"lora_rank=16"}},
		{"a negative rank", "lora_rank", func(w *costmodel.Workload) { w.LoRARank = -8 }, []string{"-8", "0"}},
		{"full training of 4 bits", "quantize", func(w *costmodel.Workload) { w.LoRARank, w.LoRATargets, w.Quantize = 0, nil, value.NF4 }, []string{"lora_rank=16"}},
	} {
		w := lora("q_proj")
		c.change(&w)
		_, err := estimate.Resolve(g, w)
		var fault *costmodel.FieldError
		if !errors.As(err, &fault) || fault.Field != c.flag {
			t.Errorf("%s: %v, want a fault of --%s", c.name, err, c.flag)
			continue
		}
		for _, s := range c.says {
			if !strings.Contains(fault.Msg.String(), s) {
				t.Errorf("%s: %q does not say %q", c.name, fault.Msg.String(), s)
			}
		}
	}
}

// TestDefaultTargets: adapters without targets have PEFT's own for the model's type; if it has
// none, the error names the model's linear layers.
func TestDefaultTargets(t *testing.T) {
	w := lora("q_proj")
	w.LoRATargets = nil
	g := config(t, mixtral)
	got, err := estimate.Resolve(g, w)
	if err != nil || strings.Join(got.LoRATargets, ",") != "q_proj,v_proj" {
		t.Errorf("targets %q, %v", got.LoRATargets, err)
	}
	g.Family = "unheard"
	_, err = estimate.Resolve(g, w)
	if err == nil || !strings.Contains(err.Error(), "PEFT has no default") || !strings.Contains(err.Error(), "o_proj") {
		t.Errorf("without a default: %v", err)
	}
}

// TestFailingTargets: modules on which PEFT 0.21 fails are refused, others of the model are not.
func TestFailingTargets(t *testing.T) {
	for _, c := range []struct {
		model   string
		targets []string
		says    string
	}{
		{`{"model_type": "mamba", "num_hidden_layers": 2, "hidden_size": 64}`, []string{"all-linear"}, "out_proj"},
		{`{"model_type": "mamba", "num_hidden_layers": 2, "hidden_size": 64}`, []string{"mixer.out_proj"}, "out_proj"},
		{`{"model_type": "mamba", "num_hidden_layers": 2, "hidden_size": 64}`, []string{"in_proj"}, ""},
		{`{"model_type": "phimoe", "num_hidden_layers": 2}`, []string{"all-linear"}, "router"},
		{`{"model_type": "llama4_text", "num_hidden_layers": 2, "moe_layers": []}`, []string{"all-linear"}, ""},
	} {
		_, err := estimate.Resolve(fromConfig(t, c.model), lora(c.targets...))
		if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %v: %v", c.model, c.targets, err)
		}
	}
}

// TestEightBitKeepsInputs: LLM.int8() keeps its inputs past a checkpoint.
func TestEightBitKeepsInputs(t *testing.T) {
	w := lora("all-linear")
	w.Recompute, w.Quantize = costmodel.RecomputeFull, value.Int8
	table := tableOf(t, llama2, w)
	const tokens = 4 * 64
	var saved int64
	for _, s := range table.Units[5].Layers {
		saved += s.RecomputeSaved
	}
	if want := int64(tokens * 4 * (3*4096 + 11008)); saved != want { // fp32: norms' outputs, attention's, the product
		t.Errorf("a block keeps %d bytes, want %d", saved, want)
	}
}

// TestLoRAOfABuiltModel: a code model's linear layers take adapters; the error names shapeless
// ones.
func TestLoRAOfABuiltModel(t *testing.T) {
	w := costmodel.Workload{Mode: costmodel.Train, Seq: 8, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW, LoRARank: 4, LoRATargets: []string{"all-linear"}}
	b := modelgraph.Builder{Name: "m", DType: modelgraph.BF16}
	b.Add("h", modelgraph.Linear{In: 64, Out: 32})
	built := fixtures.Must(b.Build())(t)
	work := fixtures.Must(estimate.Resolve(built, w))(t)
	costs := fixtures.Must(estimate.Table(built, work))(t)
	if want := int64(2*64*32 + 4*4*(64+32)); costs.Units[0].Params != want {
		t.Errorf("weights and adapters of %d B, want %d", costs.Units[0].Params, want)
	}
	declared := modelgraph.NotDeclared()
	declared.ParamsBytes = 2 * 64 * 32
	bare := fixtures.Must(modelgraph.New("m", []modelgraph.Layer{{Name: "h", Op: modelgraph.Linear{In: 64, Out: 32}, Declared: &declared}}, nil))(t)
	if _, err := estimate.Resolve(bare, w); err == nil || !strings.Contains(err.Error(), `"h" has no params: give the shapes of its linear layers`) {
		t.Errorf("%v does not say whose shapes are missing", err)
	}
}

// TestDropout: adapters keep dropout's result, and its mask for a gradient; refused without
// adapters.
func TestDropout(t *testing.T) {
	w := lora("up_proj")
	plain := tableOf(t, tinyLlama, w)
	w.LoRADropout = true
	dropped := tableOf(t, tinyLlama, w)
	var saved int64
	for i := range plain.Units {
		for j := range plain.Units[i].Layers {
			saved += dropped.Units[i].Layers[j].Saved - plain.Units[i].Layers[j].Saved
		}
	}
	if want := int64(4 * 64 * 64); saved != want { // a byte for each element; fp32 copies were kept before, and no gradient goes to the first layer's input
		t.Errorf("dropout keeps %d B more, want %d", saved, want)
	}
	w.LoRARank, w.LoRATargets = 0, nil
	if _, err := estimate.Resolve(config(t, tinyLlama), w); err == nil || !strings.Contains(err.Error(), "need a rank") {
		t.Errorf("dropout without a rank: %v", err)
	}
}
