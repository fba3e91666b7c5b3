package recipe_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestRefusesWorkloads: the error names the unsupported field and the nearest alternative.
func TestRefusesWorkloads(t *testing.T) {
	llama, bert := small(t, "llama"), small(t, "bert")
	for _, c := range []struct {
		graph  *modelgraph.Graph
		change func(workload *costmodel.Workload)
		want   string
	}{
		{llama, func(w *costmodel.Workload) { w.Precision = costmodel.FP16Mixed }, "precision: devmap's engine has no fp16 kernels and no loss scaling; precision=bf16-mixed has the range of fp32"},
		{llama, func(w *costmodel.Workload) { w.Precision = costmodel.FP16True }, "precision: devmap's engine has no kernels for it; precision=bf16-true is the nearest"},
		{llama, func(w *costmodel.Workload) { w.Quantize = "nf4" }, "quantize: devmap's engine has no kernels for quantised weights"},
		{llama, func(w *costmodel.Workload) { w.LoRARank = 8 }, "lora_rank: devmap's engine trains all weights"},
		{llama, func(w *costmodel.Workload) { w.EMA = true }, "ema: devmap's engine keeps no average"},
		{llama, func(w *costmodel.Workload) { w.Optimizer = "sgd-momentum" }, "optimizer: devmap's engine has adamw and sgd; optimizer=sgd is the nearest"},
		{llama, func(w *costmodel.Workload) { w.Optimizer = "muon" }, "optimizer: devmap's engine has adamw and sgd; optimizer=adamw is the nearest"},
		{llama, func(w *costmodel.Workload) { w.Recompute = "selective" }, "recompute: devmap's engine makes norms and products again by itself"},
		{llama, func(w *costmodel.Workload) { w.Loss = "fused" }, "loss: devmap's engine makes logits a part of the vocabulary at a time"},
		{llama, func(w *costmodel.Workload) { w.Attention = "eager" }, "attention: devmap's engine has one attention"},
		{llama, func(w *costmodel.Workload) { w.Images = 1 }, "images: devmap's engine runs no vision towers; with images=0"},
		{llama, func(w *costmodel.Workload) { w.NewTokens = 1 }, "new_tokens: only mode=infer generates tokens"},
		{llama, func(w *costmodel.Workload) { w.MicroBatches = 3 }, "micro_batches: 3 does not divide the batch of 4"},
		{llama, func(w *costmodel.Workload) { w.Seq = 0 }, "seq: sequences of 0 tokens"},
		{llama, func(w *costmodel.Workload) { w.Seq = 1 }, "seq: the only token of a sequence has none behind it to predict, so there is no loss; seq=2 is the shortest"},
		{llama, func(w *costmodel.Workload) { w.Batch, w.Seq = 1<<30, 1<<30 }, "batch: 1073741824 sequences of 1073741824 tokens are more than 2^40"},
		{llama, func(w *costmodel.Workload) { w.Batch, w.MicroBatches, w.Seq = 1<<20, 1<<20, 1<<20 }, "batch: 1099511627776 tokens in 1048576 micro-batches would take more than 2^60 bytes up to unit \"model.embed_tokens\""},
		{bert, func(*costmodel.Workload) {}, "mode: layer \"bert.encoder.layer.0.attention\" sees later tokens, and devmap's engine trains models that predict the next; mode=infer runs it"},
		{bert, func(w *costmodel.Workload) { w.Mode, w.NewTokens = costmodel.Infer, 2 }, "new_tokens: layer \"bert.encoder.layer.0.attention\" sees later tokens and has no cache"},
		{small(t, "gpt2"), func(w *costmodel.Workload) { w.Seq = 33 }, "seq: layer \"transformer.wpe\" has 32 positions; seq=32 is the longest"},
		{small(t, "gpt2"), func(w *costmodel.Workload) { w.Mode, w.Seq, w.NewTokens = costmodel.Infer, 30, 3 }, "seq: layer \"transformer.wpe\" has 32 positions, and 30 tokens with 3 new ones are more; at most 29 are left for the prompt"},
	} {
		workload := smallWorkloads()["train"]
		c.change(&workload)
		refused(t, c.graph, &workload, c.want)
	}
}

// TestRefusesDeclared: a model with declared, unnamed bytes has no program, in any mode.
func TestRefusesDeclared(t *testing.T) {
	declared := modelgraph.NotDeclared()
	declared.ParamsBytes = 1 << 20
	graph := chain(t,
		modelgraph.Layer{Name: "embed", Op: modelgraph.Embedding{Vocab: 16, Dim: 8}, Inputs: []string{}},
		modelgraph.Layer{Name: "block", Op: modelgraph.Opaque{}, Declared: &declared},
	)
	workload := smallWorkloads()["infer"]
	workload.Mode = costmodel.Load
	refused(t, graph, &workload, `runtime: devmap's engine cannot run layer "block": its 1.0 MiB of parameters are declared, and nothing names them`)
}

func refused(t *testing.T, graph *modelgraph.Graph, workload *costmodel.Workload, want string) {
	t.Helper()
	_, err := recipe.Of(graph, workload)
	var fault *costmodel.FieldError
	if !errors.As(err, &fault) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s…", err, want)
	}
}

// TestRefusesLayers: the error names a layer without kernels, and its kind.
func TestRefusesLayers(t *testing.T) {
	attention := modelgraph.Attention{Dim: 8, Heads: 2, KVHeads: 1, HeadDim: 4}
	with := func(change func(op *modelgraph.Attention)) modelgraph.Op {
		op := attention
		change(&op)
		return op
	}
	for _, c := range []struct {
		op   modelgraph.Op
		want string
	}{
		{modelgraph.MoE{Dim: 8, Hidden: 4, Experts: 2, TopK: 1}, "it is a mixture of experts; the nearest"},
		{modelgraph.StateSpace{Dim: 8, Inner: 8, State: 2, Kernel: 2, DtRank: 1}, "it is a state-space mixer"},
		{modelgraph.Conv{In: 8, Out: 8, Kernel: 3}, "it is a convolution"},
		{modelgraph.Linear{In: 8, Out: 8}, "it has no backward for a linear layer outside a block"},
		{modelgraph.Norm{Dim: 4}, "it is 4 wide, and the hidden stream 8"},
		{modelgraph.MLP{Dim: 8, Hidden: 8, Activation: "mish"}, "it has no kernel for activation \"mish\""},
		{modelgraph.MLP{Dim: 8, Hidden: 8, Activation: "gelu", LayerScale: true}, "it has no kernel for a layer scale"},
		{with(func(op *modelgraph.Attention) { op.KVRank, op.RopeDim = 4, 2 }), "it is multi-head latent attention"},
		{with(func(op *modelgraph.Attention) { op.Cross = true }), "it attends to an encoder"},
		{with(func(op *modelgraph.Attention) { op.Eager, op.ScoreBias = true, "alibi" }), "it adds a bias to the scores (alibi)"},
		{with(func(op *modelgraph.Attention) { op.ValueDim = 2 }), "its values are 2 wide and its keys 4"},
		{with(func(op *modelgraph.Attention) { op.QKNorm, op.QKNormWhole = modelgraph.RMSNorm, true }), "it norms q and k over all heads at once"},
		{with(func(op *modelgraph.Attention) { op.LayerScale = true }), "its result is multiplied by a learned vector"},
		{with(func(op *modelgraph.Attention) { op.Packed = true }), "its tokens are images"},
		{with(func(op *modelgraph.Attention) { op.Bidirectional, op.Window = true, 3 }), "it looks 3 tokens back and ahead"},
		{with(func(op *modelgraph.Attention) { op.Rope, op.Rotation.Type = true, "longrope" }), "rope type \"longrope\" is not known"},
	} {
		residual := []string{"embed", "embed"}
		switch c.op.(type) {
		case modelgraph.Norm, modelgraph.Linear:
			residual = residual[1:]
		}
		workload := smallWorkloads()["train"]
		refused(t, chain(t,
			modelgraph.Layer{Name: "embed", Op: modelgraph.Embedding{Vocab: 8, Dim: 8}, Inputs: []string{}},
			modelgraph.Layer{Name: "odd", Op: c.op, Inputs: residual},
			modelgraph.Layer{Name: "head", Op: modelgraph.Head{Dim: 8, Vocab: 8}},
		), &workload, "runtime: devmap's engine cannot run layer \"odd\": "+c.want)
	}
}

// chain is a graph of layers with the parameters that their dimensions ask for.
func chain(t *testing.T, layers ...modelgraph.Layer) *modelgraph.Graph {
	t.Helper()
	for i := range layers {
		if layers[i].Params == nil {
			layers[i].Params = modelgraph.Params(layers[i].Op, nil)
		}
		for j := range layers[i].Params {
			layers[i].Params[j].DType = modelgraph.BF16
		}
	}
	graph, err := modelgraph.New("m", layers, nil)
	if err != nil {
		t.Fatal(err)
	}
	return graph
}

// TestRefusesChains: layers that do not pass one stream on, models without a
// head or tokens, and parameters that no kernel reads.
func TestRefusesChains(t *testing.T) {
	embed := modelgraph.Layer{Name: "embed", Op: modelgraph.Embedding{Vocab: 8, Dim: 8}, Inputs: []string{}}
	head := modelgraph.Layer{Name: "head", Op: modelgraph.Head{Dim: 8, Vocab: 8}}
	mlp := modelgraph.MLP{Dim: 8, Hidden: 8, Activation: "silu"}
	stray := modelgraph.Layer{Name: "norm", Op: modelgraph.Norm{Dim: 8}, Params: []modelgraph.Tensor{{Name: "weight", Shape: []int64{8}}, {Name: "shift", Shape: []int64{8}}}}
	for name, c := range map[string]struct {
		layers []modelgraph.Layer
		want   string
	}{
		"parallel":  {[]modelgraph.Layer{embed, {Name: "a", Op: mlp, Inputs: []string{"embed", "embed"}}, {Name: "b", Op: mlp, Inputs: []string{"embed", "a"}}, head}, `layer "b": it reads "embed" and "a" where the hidden stream is "a"; it runs chains`},
		"unadded":   {[]modelgraph.Layer{embed, {Name: "a", Op: mlp, Inputs: []string{"embed"}}, head}, `layer "a": its result is not added to the hidden stream`},
		"two heads": {[]modelgraph.Layer{embed, head, {Name: "other", Op: modelgraph.Head{Dim: 8, Vocab: 8}, Inputs: []string{"embed"}}}, `layer "other": it reads "embed" where the hidden stream is "head"`},
		"no head":   {[]modelgraph.Layer{embed}, `layer "embed": the model ends with it`},
		"no tokens": {[]modelgraph.Layer{{Name: "tower", Op: modelgraph.Norm{Dim: 8}, Inputs: []string{}, Stream: modelgraph.Stream{Kind: modelgraph.Image, Tokens: 4}}}, `model "m": nothing in it embeds tokens`},
		"pooled":    {[]modelgraph.Layer{embed, {Name: "score", Op: modelgraph.Head{Dim: 8, Vocab: 2, Pooled: true}}}, `layer "score": it classifies one token a sequence`},
		"opaque":    {[]modelgraph.Layer{embed, {Name: "odd", Op: modelgraph.Opaque{}}, head}, `layer "odd": nothing says what it computes`},
		"repeated":  {[]modelgraph.Layer{embed, {Name: "again", Op: modelgraph.Norm{Dim: 8}, Repeat: 3}, head}, `layer "again": it runs 3 times in one forward`},
		"images":    {[]modelgraph.Layer{embed, {Name: "fixed", Op: modelgraph.Norm{Dim: 8}, Stream: modelgraph.Stream{Kind: modelgraph.Fixed, Tokens: 4}}, head}, `layer "fixed": it works on another kind of tokens than text (stream "fixed")`},
		"unread":    {[]modelgraph.Layer{embed, stray, head}, `layer "norm": it has no kernel that reads parameter "shift"`},
	} {
		t.Run(name, func(t *testing.T) {
			workload := smallWorkloads()["train"]
			refused(t, chain(t, c.layers...), &workload, "runtime: devmap's engine cannot run "+c.want)
		})
	}
}

// TestUnknown: the error quotes what the model's source leaves unknown; loading needs none of it.
func TestUnknown(t *testing.T) {
	graph := small(t, "llama")
	graph.Unknown = []string{`rms_norm_eps "abc"`}
	workload := smallWorkloads()["train"]
	refused(t, graph, &workload, `runtime: devmap's engine cannot run model "`+graph.Name+`": rms_norm_eps "abc"`)
	workload.Mode, workload.Seq = costmodel.Load, 0
	model := of(t, graph, workload)
	for i := range model.Units {
		if unit := &model.Units[i]; unit.Passes || unit.Grads+unit.Saved+unit.Forward+unit.Feed != 0 || unit.Weights == 0 && i != len(model.Units)-2 {
			t.Errorf("loaded, %s takes %+v", unit.Name, unit.Regions)
		}
	}
}

// TestWarnsOfDropout: the engine trains without.
func TestWarnsOfDropout(t *testing.T) {
	graph, workloads := small(t, "gpt2"), smallWorkloads()
	if warnings := of(t, graph, workloads["train"]).Warnings; len(warnings) != 1 || !strings.Contains(warnings[0].String(), "dropout") {
		t.Errorf("warnings %v", warnings)
	}
	if warnings := of(t, graph, workloads["infer"]).Warnings; len(warnings) != 0 {
		t.Errorf("warnings %v in inference", warnings)
	}
}
