package estimate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

func table(t *testing.T, g *modelgraph.Graph, w costmodel.Workload) *costmodel.Table {
	t.Helper()
	w, err := estimate.Resolve(g, w)
	if err != nil {
		t.Fatal(err)
	}
	out, err := estimate.Table(g, w)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestOptimizers: states and the step's temporaries of a matrix [64, 100] and
// of a bias [5000], in bf16, computed by hand.
func TestOptimizers(t *testing.T) {
	const matrix, bias = 64 * 100, 5000
	g, err := modelgraph.New("m", []modelgraph.Layer{{Name: "a", Op: modelgraph.Linear{In: 100, Out: 64}, Params: []modelgraph.Tensor{
		{Name: "weight", Shape: []int64{64, 100}, DType: modelgraph.BF16},
		{Name: "bias", Shape: []int64{bias}, DType: modelgraph.BF16},
		{Name: "codes", Shape: []int64{1000}, DType: uint8Type}, // quantised: not trained
	}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		optimizer        string
		precision        costmodel.Precision
		state, transient int64
	}{
		{costmodel.AdamW, costmodel.BF16True, 4 * (matrix + bias), 0},
		{costmodel.AdamW, costmodel.FP32True, 8 * (matrix + bias), 0},
		{costmodel.AdamW, costmodel.BF16Mixed, 8 * (matrix + bias), 0},
		{value.AdamWForeach, costmodel.BF16True, 4 * (matrix + bias), 2 * (matrix + bias)},
		{value.AdamW8bit, costmodel.BF16True, 2*(matrix+4*25) + 2*(bias+4*20), 0},
		{costmodel.SGD, costmodel.BF16True, 0, 0},
		{value.SGDMomentum, costmodel.BF16True, 2 * (matrix + bias), 0},
		{value.Adafactor, costmodel.BF16True, 4*(64+100) + 4*bias, 20 * matrix},
		{value.Muon, costmodel.BF16True, 2*matrix + 4*bias, 6 * matrix},
	} {
		u := table(t, g, costmodel.Workload{Mode: costmodel.Train, Seq: 1, Precision: c.precision, Optimizer: c.optimizer}).Units[0]
		if u.OptimizerState != c.state || u.StepTransient != c.transient {
			t.Errorf("%s %s: state %d, transient %d, want %d and %d", c.optimizer, c.precision, u.OptimizerState, u.StepTransient, c.state, c.transient)
		}
	}
}

// fromConfig is a small model of a family.
func fromConfig(t *testing.T, config string) *modelgraph.Graph {
	t.Helper()
	g, err := hf.FromConfig("config.json", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestEncoderGenerates: models that only encode, or have no language-model head, refuse new tokens.
func TestEncoderGenerates(t *testing.T) {
	for config, refused := range map[string]bool{
		`{"model_type": "bert", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 1000}`: true,
		`{"model_type": "llama", ` + tiny + `}`:                                                                             false,
		`{"model_type": "llama", "architectures": ["LlamaModel"], ` + tiny + `}`:                                            true,
		`{"model_type": "llama", "architectures": ["LlamaForTokenClassification"], ` + tiny + `}`:                           true,
		`{"model_type": "llama", "architectures": ["LlamaForSequenceClassification"], ` + tiny + `}`:                        true,
		`{"model_type": "t5", "d_model": 64, "d_ff": 128, "num_layers": 2, "num_heads": 4, "d_kv": 16, "vocab_size": 1000}`: false,
		`{"model_type": "mamba", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 1000}`:                            false,
	} {
		_, err := estimate.Resolve(fromConfig(t, config), costmodel.Workload{Mode: costmodel.Infer, NewTokens: 4})
		var fault *costmodel.FieldError
		if got := errors.As(err, &fault) && fault.Field == "new_tokens"; got != refused {
			t.Errorf("%s: %v", config, err)
		}
	}
}

const tiny = `"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 1000`

// sums adds up a table's gradients: after backward, and between micro-batches.
func sums(tab *costmodel.Table) (params, grads, owned, state int64) {
	for i := range tab.Units {
		u := &tab.Units[i]
		params, owned, state = params+u.Params, owned+u.ResidentGrads, state+u.OptimizerState
		grads += timeline.Of(u).Grads
	}
	return params, grads, owned, state
}

// TestGradients: as many bytes as the weights, tied ones once; permanent with accumulation.
func TestGradients(t *testing.T) {
	for _, tied := range []string{"true", "false"} {
		g := fromConfig(t, `{"model_type": "llama", "tie_word_embeddings": `+tied+`, `+tiny+`}`)
		w := costmodel.Workload{Mode: costmodel.Train, Batch: 4, Seq: 16, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW}
		params, grads, owned, state := sums(table(t, g, w))
		if params != 2*g.ParamCount() || grads != params || owned != 0 || state != 2*params {
			t.Errorf("tied %s: %d bytes of weights, %d of gradients, %d held, %d of state", tied, params, grads, owned, state)
		}
		w.MicroBatches = 2
		if _, grads, owned, _ := sums(table(t, g, w)); grads != 0 || owned != params {
			t.Errorf("tied %s, accumulated: %d of gradients, %d held, want 0 and %d", tied, grads, owned, params)
		}
		w.Mode, w.MicroBatches = costmodel.Infer, 1
		if _, grads, owned, state := sums(table(t, g, w)); grads+owned+state != 0 {
			t.Errorf("tied %s, infer: %d of gradients, %d held, %d of state", tied, grads, owned, state)
		}
	}
}

// TestAccumulation halves the activations with the micro-batch.
func TestAccumulation(t *testing.T) {
	g := fromConfig(t, `{"model_type": "llama", `+tiny+`}`)
	w := costmodel.Workload{Mode: costmodel.Train, Batch: 8, Seq: 16, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW}
	u, _ := estimate.UnitNamed(g, "model.layers.0")
	tab := table(t, g, w)
	whole, flops := timeline.Of(&tab.Units[u]).Saved, tab.Units[u].FLOPs
	w.MicroBatches = 2
	tab = table(t, g, w)
	constants := int64(2*512 + 2*2*16*16) // Philox seed and offset; cosines and sines of a sequence
	if half := timeline.Of(&tab.Units[u]).Saved; 2*(half-constants) != whole-constants || tab.Units[u].FLOPs != flops/2 {
		t.Errorf("a batch of 8 keeps %d bytes, of 4 %d", whole, half)
	}
}

// TestVisionTower: a tower that sees no image holds weights and nothing else.
func TestVisionTower(t *testing.T) {
	g := fromConfig(t, `{"model_type": "paligemma", "text_config": {"model_type": "gemma", "head_dim": 16, `+tiny+`},
		"vision_config": {"model_type": "siglip_vision_model", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 28, "patch_size": 14}}`)
	w := costmodel.Workload{Mode: costmodel.Train, Batch: 2, Seq: 16, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW}
	check := func(tab *costmodel.Table, runs bool) {
		t.Helper()
		tower, saved := 0, int64(0)
		for i := range g.Units {
			if g.Layers[g.Units[i].First].Stream.Kind != modelgraph.Image || tab.Units[i].Params == 0 {
				continue
			}
			tower++
			u := &tab.Units[i]
			if r := timeline.Of(u); (u.OptimizerState > 0) != runs || (r.Grads > 0) != runs || (u.FLOPs > 0) != runs {
				t.Errorf("%s, runs %t: state %d, %+v", u.Name, runs, u.OptimizerState, r)
			}
			saved += timeline.Of(u).Saved // the projector's input is its norm's
		}
		if tower < 3 || (saved > 0) != runs {
			t.Errorf("%d units of a vision tower keep %d B, runs %t", tower, saved, runs)
		}
	}
	check(table(t, g, w), false)
	w.Images = 1
	check(table(t, g, w), true)
}

// TestDeclared: a model file's figures are used unchanged.
func TestDeclared(t *testing.T) {
	costs := func(params, act, work, out int64) *modelgraph.Declared {
		return &modelgraph.Declared{ParamsBytes: params, ActivationBytes: act, WorkspaceBytes: work, OutputBytes: out, ForwardSeconds: -1, BackwardSeconds: -1}
	}
	g, err := modelgraph.New("m", []modelgraph.Layer{{Name: "a", Declared: costs(100, 30, 7, 11)}, {Name: "b", Declared: costs(50, 20, 5, 13)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tab := table(t, g, costmodel.Workload{Mode: costmodel.Train, Seq: 1, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW})
	want := timeline.Summary{Static: 300, Saved: 30, Grads: 100, Forward: 37, Backward: 30 + 7 + 100, Products: true}
	if r := timeline.Of(&tab.Units[0]); r != want || !tab.Units[0].Declared || tab.OutputBytes != 13 || len(tab.Warnings) > 0 {
		t.Errorf("%+v (declared: %t), want %+v; output %d, warnings %q", r, tab.Units[0].Declared, want, tab.OutputBytes, tab.Warnings)
	}
	tab = table(t, g, costmodel.Workload{Mode: costmodel.Infer, Seq: 1, Precision: costmodel.BF16True})
	if r := timeline.Of(&tab.Units[0]); r != (timeline.Summary{Static: 100, Forward: 37, Products: true}) {
		t.Errorf("infer: %+v", r)
	}
	tab = table(t, g, costmodel.Workload{Mode: costmodel.Load})
	if r := timeline.Of(&tab.Units[1]); r != (timeline.Summary{Static: 50}) || !tab.Additive {
		t.Errorf("load: %+v", r)
	}
}

// TestUnknownOperations: weights without operations can be loaded, give a warning in a forward, and
// are refused in training; next to known ones they give a warning.
func TestUnknownOperations(t *testing.T) {
	bare := modelgraph.Layer{Name: "a", Params: []modelgraph.Tensor{{Name: "weight", Shape: []int64{4, 4}, DType: modelgraph.BF16}}}
	known := bare
	known.Name, known.Op = "b", modelgraph.Linear{In: 4, Out: 4}
	declared := modelgraph.Layer{Name: "c", Declared: &modelgraph.Declared{ParamsBytes: 8, ActivationBytes: 8, WorkspaceBytes: -1, OutputBytes: -1}}
	const warned, refused = "no operation or cost is known for layer \"a\"", "mode: no operation and no declared cost is known for any of the 1 layers"
	for _, c := range []struct {
		layers []modelgraph.Layer
		mode   costmodel.Mode
		want   string
	}{
		{[]modelgraph.Layer{bare}, costmodel.Train, refused},
		{[]modelgraph.Layer{bare}, costmodel.Infer, warned},
		{[]modelgraph.Layer{bare}, costmodel.Load, ""},
		{[]modelgraph.Layer{bare, known}, costmodel.Train, warned},
		{[]modelgraph.Layer{known}, costmodel.Train, ""},
		{[]modelgraph.Layer{declared}, costmodel.Train, ""},
	} {
		g, err := modelgraph.New("m", c.layers, nil)
		if err != nil {
			t.Fatal(err)
		}
		w, err := estimate.Resolve(g, costmodel.Workload{Mode: c.mode, Seq: 1})
		if err != nil {
			t.Fatal(err)
		}
		_, err = estimate.Resolve(g, costmodel.Workload{Mode: c.mode, Seq: 1, Kernels: "package"})
		if bare := c.layers[0].Name == "a"; err == nil || strings.Contains(err.Error(), "gated delta rules, which this model has not") == bare {
			t.Errorf("%d layers, --kernels package: %v", len(c.layers), err)
		}
		var said string
		if tab, err := estimate.Table(g, w); err != nil {
			said = err.Error()
		} else {
			for _, warning := range tab.Warnings {
				said += warning.String()
			}
		}
		if !strings.HasPrefix(said, c.want) || (said == "") != (c.want == "") {
			t.Errorf("%d layers, %s: %q, want %q", len(c.layers), c.mode, said, c.want)
		}
	}
}
