package hf

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// textModels are the language models that a multimodal config may name in its text_config.
var textModels = make(map[string]func(*config) *decoder)

// textModel reads the language model of a text_config, of type def if it names none.
func textModel(cfg *config, def string) *decoder {
	name := cfg.str(def, "model_type")
	if f := textModels[name]; f != nil {
		return f(cfg)
	}
	cfg.fail("model_type", "%q is a language model that is not known here (known: %s)",
		name, strings.Join(slices.Sorted(maps.Keys(textModels)), ", "))
	return textModels[def](cfg)
}

// multimodal is a vision tower, a projector and a language model (XForConditionalGeneration).
type multimodal struct {
	// features adds the tower and the projector at a module path; the layer it names has the image
	// features as the language model takes them.
	features func(modules *builder, path string) string
	text     *decoder
	tied     bool // lm_head shares the embedding
	returned bool // the outputs have the features (image_hidden_states)
	// deep are features that are added after the first decoder layers, one each (Qwen3-VL).
	deep []string
	// module is the language model's, language_model if empty.
	module string
}

// masked is a decoder with a mask for images (create_causal_mask_mapping of Gemma 3 and PaliGemma).
func (d *decoder) masked() *decoder {
	attention := d.attention
	d.attention = func(layer int64) part {
		p := attention(layer)
		if op, ok := p.op.(modelgraph.Attention); ok {
			op.ImageMask = true
			p.op = op
		}
		return p
	}
	return d
}

// build adds the modules of a class.
func (model *multimodal) build(modules *builder, cfg *config, class string) {
	path := "model"
	if baseClass(class) {
		path = ""
	}
	image := model.features(modules, path)
	if model.returned {
		returned(modules, image)
	}
	text := dot(path, cmp.Or(model.module, "language_model"))
	from := len(modules.layers)
	model.text.build(modules, text)
	embed := dot(text, "embed_tokens")
	feed(modules, from, embed, image)
	for i, name := range model.deep {
		feed(modules, from, dot(indexed(dot(text, "layers"), int64(i)), "mlp"), name)
	}
	hidden := model.text.hidden
	switch {
	case baseClass(class):
	case isTask(class, sequenceClassification):
		count := cfg.labels()
		modules.add("score", modelgraph.Head{Dim: hidden, Vocab: count, Pooled: true}, []string{modules.hidden}, linearParams("", hidden, count, false)...)
	case isTask(class, tokenClassification):
		addClassHead(modules, "score", hidden, cfg.labels(), false, modules.hidden)
	default:
		owner := ""
		if model.tied {
			owner = dot(embed, "weight")
		}
		addVocabHead(modules, "lm_head", hidden, model.text.vocab, owner)
	}
}

// returned marks a projection whose result the model returns.
func returned(modules *builder, name string) {
	for i := range modules.layers {
		if op, ok := modules.layers[i].Op.(modelgraph.Linear); ok && modules.layers[i].Name == name {
			op.Returned = true
			modules.layers[i].Op = op
		}
	}
}

// feed connects the image features to the first layer, from index from on, that reads the token
// embeddings. They replace the image tokens (masked_scatter in the models' forward).
func feed(modules *builder, from int, embed, image string) {
	for i := from; i < len(modules.layers); i++ {
		if in := modules.layers[i].Inputs; len(in) > 0 && in[0] == embed {
			modules.layers[i].Inputs = append(slices.Clone(in), image)
			return
		}
	}
}

// textMaxSeq is the longest sequence of the language model.
func textMaxSeq(cfg *config) int64 { return cfg.sub("text_config").dim(0, "max_position_embeddings") }
