package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"mamba"},
		class:   "MambaForCausalLM",
		classes: causalClasses("Mamba"),
		unread:  []string{"use_mambapy"},
		build:   func(modules *builder, cfg *config, class string) { readMamba(cfg).build(modules, class) },
		// A recurrence: nothing bounds the sequence.
		maxSeq: func(*config) int64 { return 0 },
	})
}

// mamba is configuration_mamba.py: MambaConfig.
type mamba struct {
	hidden, vocab, layers int64

	mixer          modelgraph.StateSpace
	bias, convBias bool
	tied           bool
}

func readMamba(cfg *config) *mamba {
	hidden := cfg.pos(768, "hidden_size")
	model := &mamba{
		hidden: hidden, vocab: cfg.pos(50280, "vocab_size"), layers: cfg.count(32, "num_hidden_layers"),
		mixer: modelgraph.StateSpace{
			Dim: hidden, State: cfg.pos(16, "state_size"), Kernel: cfg.pos(4, "conv_kernel"), DtRank: timeStepRank(cfg, hidden, "time_step_rank"),
		},
		bias: cfg.bool(false, "use_bias"), convBias: cfg.bool(true, "use_conv_bias"),
		tied: cfg.bool(true, "tie_word_embeddings"),
	}
	model.mixer.FP32Residual = cfg.bool(true, "residual_in_fp32")
	// intermediate_size is no field of MambaConfig, but sets the attribute.
	if cfg.has("intermediate_size") {
		model.mixer.Inner = cfg.pos(0, "intermediate_size")
	} else {
		model.mixer.Inner = cfg.product("expand", cfg.pos(2, "expand"), hidden)
	}
	return model
}

// timeStepRank reads a number or "auto": a 16th of the hidden size, rounded up.
func timeStepRank(cfg *config, hidden int64, name string) int64 {
	if cfg.has(name) && cfg.members[name].Kind() == '"' {
		if text := cfg.str("", name); text != "auto" {
			cfg.fail(name, "%q is neither a size nor \"auto\"", text)
		}
		return (hidden + 15) / 16
	}
	return cfg.pos((hidden+15)/16, name)
}

func (model *mamba) build(modules *builder, class string) {
	path := "backbone"
	if baseClass(class) {
		path = ""
	}
	embed := addTable(modules, dot(path, "embeddings"), model.vocab, model.hidden, "")
	modules.hidden = embed
	for i := range model.layers {
		name := indexed(dot(path, "layers"), i)
		modules.unit(name, func() { model.block(modules, name) })
	}
	modules.hidden = model.norm(modules, dot(path, "norm_f"))
	if baseClass(class) {
		return
	}
	tied := ""
	if model.tied {
		tied = dot(embed, "weight")
	}
	addHead(modules, "lm_head", modelgraph.Head{Dim: model.hidden, Vocab: model.vocab, FP32: true}, tied)
}

// block is modeling_mamba.py: MambaBlock, MambaMixer.
func (model *mamba) block(modules *builder, name string) {
	residual := modules.hidden
	norm := model.norm(modules, dot(name, "norm"))
	biased := map[string]bool{"conv1d": model.convBias, "in_proj": model.bias, "out_proj": model.bias}
	params := modelgraph.Params(model.mixer, func(linear string) bool { return biased[linear] })
	modules.hidden = modules.add(dot(name, "mixer"), model.mixer, []string{norm, residual}, params...).Name
}

func (model *mamba) norm(modules *builder, name string) string {
	op := modelgraph.Norm{Dim: model.hidden, Style: modelgraph.RMSNorm}
	return modules.add(name, op, []string{modules.hidden}, tensor("weight", model.hidden)).Name
}
