package hf

import (
	"math"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	register(family{
		runs:  true,
		types: []string{"gpt2"},
		class: "GPT2LMHeadModel",
		classes: []string{
			"GPT2LMHeadModel", "GPT2Model", "GPT2DoubleHeadsModel", "GPT2ForSequenceClassification",
			"GPT2ForTokenClassification", "GPT2ForQuestionAnswering",
		},
		build:  func(modules *builder, cfg *config, class string) { readGPT2(cfg).build(modules, cfg, class) },
		maxSeq: func(cfg *config) int64 { return cfg.pos(1024, "max_position_embeddings", "n_positions") },
	})
}

// gpt2 is configuration_gpt2.py: GPT2Config. Its attribute_map makes the common names win over the
// short ones if a config has both.
type gpt2 struct {
	hidden, vocab, positions, layers int64

	attention modelgraph.Attention
	mlp       modelgraph.MLP
	cross     bool // attention to an encoder that is not part of the model
	tied      bool
	epsilon   float64
	// unscaled: scores are not divided by the root of the head's width. byDepth: they are divided
	// by the block's number.
	unscaled, byDepth bool
}

func readGPT2(cfg *config) *gpt2 {
	hidden := cfg.pos(768, "hidden_size", "n_embd")
	model := &gpt2{
		hidden: hidden, vocab: cfg.pos(50257, "vocab_size"),
		positions: cfg.pos(1024, "max_position_embeddings", "n_positions"),
		layers:    cfg.count(12, "num_hidden_layers", "n_layer"),
		attention: equalHeads(cfg, hidden, 12, "num_attention_heads", "n_head"),
		mlp:       modelgraph.MLP{Dim: hidden, Hidden: cfg.optional(4*hidden, "n_inner"), Activation: cfg.str("gelu_new", "activation_function"), Extra: 1},
		cross:     cfg.bool(false, "add_cross_attention"),
		tied:      cfg.bool(true, "tie_word_embeddings"),
	}
	model.epsilon = cfg.number(1e-5, "layer_norm_epsilon")
	model.unscaled, model.byDepth = !cfg.switched(true, "scale_attn_weights"), cfg.switched(false, "scale_attn_by_inverse_layer_idx")
	model.attention.Fused = true
	model.attention.Transposed, model.mlp.Transposed = true, true
	model.attention.Dropout = cfg.float(0.1, "resid_pdrop") > 0
	model.mlp.Dropout = model.attention.Dropout
	model.attention.OwnScores, model.attention.InnerDropout = true, cfg.float(0.1, "attn_pdrop") > 0
	return model
}

func (model *gpt2) build(modules *builder, cfg *config, class string) {
	path := "transformer"
	if class == "GPT2Model" {
		path = ""
	}
	model.stack(modules, path)
	switch class {
	case "GPT2LMHeadModel", "GPT2DoubleHeadsModel":
		tied := ""
		if model.tied {
			tied = dot(path, "wte.weight")
		}
		addVocabHead(modules, "lm_head", model.hidden, model.vocab, tied)
		if class == "GPT2DoubleHeadsModel" {
			model.summary(modules, cfg)
		}
	default:
		addDecoderTask(modules, cfg, class, model.hidden)
	}
}

// summary is modeling_gpt2.py: GPT2SequenceSummary, which reads one token. GPT2DoubleHeadsModel
// sets num_labels to 1.
func (model *gpt2) summary(modules *builder, cfg *config) {
	const name = "multiple_choice_head.summary"
	if !cfg.bool(true, "summary_use_proj") {
		return
	}
	if cfg.bool(true, "summary_proj_to_labels") {
		addClassHead(modules, name, model.hidden, 1, true, modules.hidden)
		return
	}
	op := modelgraph.Linear{In: model.hidden, Out: model.hidden, Activation: cfg.name("summary_activation"), Pooled: true}
	modules.add(name, op, []string{modules.hidden}, linearParams("", model.hidden, model.hidden, true)...)
}

// stack is modeling_gpt2.py: GPT2Model.
func (model *gpt2) stack(modules *builder, path string) {
	modules.epsilon = model.epsilon
	modules.hidden = addTable(modules, dot(path, "wte"), model.vocab, model.hidden, "")
	places := modelgraph.Embedding{Vocab: model.positions, Dim: model.hidden, Index: modelgraph.PositionIndex, Persists: true}
	modules.hidden = addRows(modules, dot(path, "wpe"), places, modules.hidden)
	modules.empty(dot(path, "drop"))
	for i := range model.layers {
		name := indexed(dot(path, "h"), i)
		modules.unit(name, func() { model.block(modules, name, i) })
	}
	modules.hidden = addLayerNorm(modules, dot(path, "ln_f"), model.hidden, modules.hidden)
}

// block is modeling_gpt2.py: GPT2Block. The cross-attention follows ln_2 but runs before it.
func (model *gpt2) block(modules *builder, name string, layer int64) {
	hidden, attention := model.hidden, model.attention
	attention.Scale = model.scale(layer)
	residual := modules.hidden
	norm := addLayerNorm(modules, dot(name, "ln_1"), hidden, residual)
	mixed := modules.add(dot(name, "attn"), attention, []string{norm, residual},
		join(conv1D("c_attn", hidden, 3*hidden), conv1D("c_proj", hidden, hidden))...).Name
	crossNorm, cross := dot(name, "ln_cross_attn"), dot(name, "crossattention")
	self := mixed
	if model.cross {
		mixed = cross
	}
	norm = addLayerNorm(modules, dot(name, "ln_2"), hidden, mixed)
	if model.cross {
		op := attention
		op.Cross, op.Fused = true, false
		modules.add(cross, op, []string{crossNorm, self},
			join(conv1D("c_attn", hidden, 2*hidden), conv1D("q_attn", hidden, hidden), conv1D("c_proj", hidden, hidden))...)
		addLayerNorm(modules, crossNorm, hidden, self)
	}
	modules.hidden = modules.add(dot(name, "mlp"), model.mlp, []string{norm, mixed},
		join(conv1D("c_fc", hidden, model.mlp.Hidden), conv1D("c_proj", model.mlp.Hidden, hidden))...).Name
}

// scale is the scale of a block's scores, 0 for the usual one (modeling_gpt2.py: GPT2Attention).
// reorder_and_upcast_attn, which scales keys in fp32 first, changes only rounding.
func (model *gpt2) scale(layer int64) float64 {
	scale := 0.0
	if model.unscaled {
		scale = 1
	}
	if model.byDepth {
		if scale == 0 {
			scale = 1 / math.Sqrt(float64(model.attention.HeadDim))
		}
		scale /= float64(layer + 1)
	}
	return scale
}

// conv1D is pytorch_utils.py: Conv1D, a linear layer whose weight is stored as [in, out].
func conv1D(name string, in, out int64) []modelgraph.Tensor {
	return []modelgraph.Tensor{tensor(dot(name, "weight"), in, out), tensor(dot(name, "bias"), out)}
}
