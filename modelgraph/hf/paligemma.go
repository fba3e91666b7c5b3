package hf

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	register(family{
		types:   []string{"paligemma"},
		class:   "PaliGemmaForConditionalGeneration",
		classes: []string{"PaliGemmaForConditionalGeneration", "PaliGemmaModel"},
		build: func(modules *builder, cfg *config, class string) {
			paligemma(cfg).build(modules, cfg, class)
		},
		maxSeq: textMaxSeq,
	})
}

// The parts of a PaliGemmaConfig that names none (configuration_paligemma.py).
var (
	paligemmaVision = map[string]jsontext.Value{
		"hidden_size": jsontext.Value("1152"), "intermediate_size": jsontext.Value("4096"),
		"num_hidden_layers": jsontext.Value("27"), "num_attention_heads": jsontext.Value("16"),
		"patch_size": jsontext.Value("14"), "image_size": jsontext.Value("224"),
		"vision_use_head": jsontext.Value("false"),
	}
	paligemmaText = map[string]jsontext.Value{
		"hidden_size": jsontext.Value("2048"), "intermediate_size": jsontext.Value("16384"),
		"num_hidden_layers": jsontext.Value("18"), "num_attention_heads": jsontext.Value("8"),
		"num_key_value_heads": jsontext.Value("1"),
	}
)

// paligemma reads a PaliGemmaConfig: SigLIP, one projection, and Gemma or Gemma 2. The vocabulary
// is text_config's. The config's vocab_size counts only before Transformers 5.20 without a
// text_config.
func paligemma(cfg *config) *multimodal {
	vision, text := cfg.sub("vision_config"), cfg.sub("text_config")
	if !cfg.has("vision_config") {
		vision.members = paligemmaVision
	}
	if !cfg.has("text_config") {
		text.members = paligemmaText
		vocab := int64(257152)
		own := cfg.pos(vocab, "vocab_size")
		if own != vocab {
			cfg.drift(fmt.Sprintf("releases from 5.20 on give a text_config that is absent the vocab_size %d, earlier ones %d", vocab, own))
		}
		if !cfg.since("5.20") {
			vocab = own
		}
		text = text.with("vocab_size", jsontext.Value(strconv.FormatInt(vocab, 10)))
	}
	// Image and prompt attend to each other fully, but only in the prefill. The model is causal and
	// has a KV cache for every value of this field.
	text = text.with("use_bidirectional_attention", jsontext.Value("false"))
	tower := siglipTower(vision)
	out := cfg.pos(2048, "projection_dim")
	return &multimodal{
		text: textModel(text, "gemma").masked(), returned: true,
		tied: cfg.bool(true, "tie_word_embeddings"),
		features: func(modules *builder, path string) string {
			_, image := tower.build(modules, dot(path, "vision_tower"))
			unit := dot(path, "multi_modal_projector") // a no-split class
			name := dot(unit, "linear")
			modules.unit(unit, func() {
				modules.on(imageStream(tower.tokens), func() {
					modules.add(name, modelgraph.Linear{In: tower.dim, Out: out}, []string{image}, linearParams("", tower.dim, out, true)...)
				})
			})
			return name
		},
	}
}

// with is the object with one field set.
func (cfg *config) with(name string, v jsontext.Value) *config {
	out := *cfg
	out.members = map[string]jsontext.Value{name: v}
	for key, old := range cfg.members {
		if key != name {
			out.members[key] = old
		}
	}
	return &out
}
