package hf

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	for kind, name := range map[string]string{"xlm-roberta": "XLMRoberta", "camembert": "Camembert", "roberta": "Roberta"} {
		register(family{
			types: []string{kind}, table: true, class: name + "ForMaskedLM",
			classes: []string{
				name + "ForMaskedLM", name + "Model", name + "ForCausalLM", name + "ForSequenceClassification",
				name + "ForMultipleChoice", name + "ForTokenClassification", name + "ForQuestionAnswering",
			},
			build: func(modules *builder, cfg *config, class string) {
				roberta(modules, cfg, strings.TrimPrefix(class, name), kind != "roberta")
			},
			// Positions are counted from after the padding token's.
			maxSeq: func(cfg *config) int64 { return cfg.pos(0, "max_position_embeddings") - cfg.orZero("pad_token_id") - 1 },
		})
	}
}

// roberta is a BERT with another head (modeling_roberta.py), first in XLM-RoBERTa and CamemBERT.
func roberta(modules *builder, cfg *config, class string, front bool) {
	model := readBERT(cfg)
	modules.epsilon = model.epsilon
	path := "roberta"
	if baseClass(class) {
		path = ""
	}
	model.lateRows = true
	model.embeddings(modules, dot(path, "embeddings"))
	for i := range model.layers {
		name := indexed(dot(path, "encoder.layer"), i)
		modules.unit(name, func() { model.block(modules, name) })
	}
	pooled := modules.hidden
	if baseClass(class) || class == "ForMultipleChoice" {
		pooled = model.pooler(modules, path, "")
	}
	head := func() {
		switch class {
		case "ForMaskedLM", "ForCausalLM":
			model.lmHead(modules, "roberta", front)
		case "ForSequenceClassification": // of the first token
			dense := model.pooledLinear(modules, "classifier.dense", "tanh")
			addClassHead(modules, "classifier.out_proj", model.hidden, cfg.labels(), true, dense)
		default:
			model.taskHead(modules, cfg, class, pooled)
		}
	}
	if front {
		modules.inFront(head)
		return
	}
	head()
}

// lmHead is XLMRobertaLMHead, which has its bias twice.
func (model *bert) lmHead(modules *builder, path string, front bool) {
	const name = "lm_head"
	modules.add(dot(name, "bias"), modelgraph.Opaque{}, nil, tensor("", model.vocab))
	op := modelgraph.Linear{In: model.hidden, Out: model.hidden, Activation: "gelu"}
	dense := modules.add(dot(name, "dense"), op, []string{modules.hidden}, linearParams("", model.hidden, model.hidden, true)...).Name
	normed := addLayerNorm(modules, dot(name, "layer_norm"), model.hidden, dense)
	addClassHead(modules, dot(name, "decoder"), model.hidden, model.vocab, false, normed)
	if model.tied {
		names := []string{path + ".embeddings.word_embeddings.weight", dot(name, "decoder.weight")}
		if front { // the first owns it
			slices.Reverse(names)
		}
		modules.tie(names...)
		modules.tie(dot(name, "bias"), dot(name, "decoder.bias"))
	}
}

// inFront puts the layers that add adds before all others.
func (modules *builder) inFront(add func()) {
	from := len(modules.layers)
	add()
	modules.layers = slices.Concat(modules.layers[from:], modules.layers[:from])
}
