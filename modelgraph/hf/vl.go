package hf

import (
	"maps"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// textModels are the language models that a multimodal config may name in
// its text_config.
var textModels = map[string]func(*config) *decoder{
	"gemma":       gemma,
	"gemma2":      gemma2,
	"gemma3_text": gemma3Text,
	"gpt_oss":     gptOSS,
	"llama":       llama,
	"mistral":     mistral,
	"phi3":        phi3,
	"qwen2":       qwen2,
	"qwen3":       qwen3,
	"qwen3_moe":   qwen3MoE,
}

// textModel reads the language model of a text_config, of type def where it
// names none.
func textModel(c *config, def string) *decoder {
	name := c.str(def, "model_type")
	if f := textModels[name]; f != nil {
		return f(c)
	}
	c.fail("model_type", "%q is not a language model that is known here (known: %s)",
		name, strings.Join(slices.Sorted(maps.Keys(textModels)), ", "))
	return textModels[def](c)
}

// multimodal is a vision tower, a projector and a language model: the
// modules of Transformers' XForConditionalGeneration.
type multimodal struct {
	// features adds the tower and the projector at a module path; the layer
	// it names has the image features as the language model takes them.
	features func(b *builder, path string) string
	text     *decoder
	tied     bool // lm_head shares the embedding
	returned bool // the outputs have the features (image_hidden_states)
}

// masked is a decoder that is given a mask where there are images
// (modeling_gemma3.py, modeling_paligemma.py: create_causal_mask_mapping).
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
func (m *multimodal) build(b *builder, c *config, class string) {
	path := "model"
	if baseClass(class) {
		path = ""
	}
	image := m.features(b, path)
	if m.returned {
		returned(b, image)
	}
	text := dot(path, "language_model")
	from := len(b.layers)
	m.text.build(b, text)
	embed := dot(text, "embed_tokens")
	feed(b, from, embed, image)
	h := m.text.hidden
	switch {
	case baseClass(class):
	case isTask(class, sequenceClassification):
		n := c.labels()
		b.add("score", modelgraph.Head{Dim: h, Vocab: n, Pooled: true}, []string{b.hidden}, linear("", h, n, false)...)
	default:
		owner := ""
		if m.tied {
			owner = dot(embed, "weight")
		}
		addVocabHead(b, "lm_head", h, m.text.vocab, owner)
	}
}

// returned marks a projection whose result the model returns.
func returned(b *builder, name string) {
	for i := range b.layers {
		if op, ok := b.layers[i].Op.(modelgraph.Linear); ok && b.layers[i].Name == name {
			op.Returned = true
			b.layers[i].Op = op
		}
	}
}

// feed makes the first layer from index from on that transforms the token
// embeddings read the image features too: they take the places of the image
// tokens (masked_scatter in the models' forward).
func feed(b *builder, from int, embed, image string) {
	for i := from; i < len(b.layers); i++ {
		if in := b.layers[i].Inputs; len(in) > 0 && in[0] == embed {
			b.layers[i].Inputs = append(slices.Clone(in), image)
			return
		}
	}
}

// textMaxSeq is the longest sequence of the language model.
func textMaxSeq(c *config) int64 { return c.sub("text_config").dim(0, "max_position_embeddings") }
