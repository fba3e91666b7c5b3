package hf

import (
	"maps"
	"slices"
	"strings"
)

func init() {
	register(family{
		types:   []string{"internvl_chat"},
		class:   "InternVLChatModel",
		classes: []string{"InternVLChatModel"},
		unread: []string{
			"template", "dynamic_image_size", "use_thumbnail", "ps_version", "min_dynamic_patch", "max_dynamic_patch",
			"pad2square", "image_fold", "hidden_size", "system_message", "use_backbone_lora", "use_llm_lora",
		},
		build: func(b *builder, c *config, _ string) {
			readInternVLChat(c).build(b)
		},
		maxSeq: func(c *config) int64 { return c.sub("llm_config").dim(0, "max_position_embeddings") },
	})
}

// internVLChat is InternVL 2 and 2.5 as OpenGVLab publishes them, with the
// names of the code in the checkpoints' repositories
// (modeling_internvl_chat.py: InternVLChatModel). An image is one tile.
//
// Its _no_split_modules are InternVisionModel, LlamaDecoderLayer,
// InternLM2DecoderLayer and, in later copies, Phi3DecoderLayer and
// Qwen2DecoderLayer: the vision tower as a whole is one unit, although its
// own class would let it be split between blocks.
type internVLChat struct {
	tower   *remoteInternViT
	shuffle int64 // patches along a token's side
	wide    int64 // channels of a token before the projector
	out     int64 // hidden size of the language model
	// image names the tower's hidden state that the language model gets.
	image func(states []string) string
	// text adds the language model and names its token embedding.
	text func(b *builder) string
}

// readInternVLChat reads an InternVLChatConfig.
func readInternVLChat(c *config) *internVLChat {
	force := int64(0)
	if c.dim(0, "force_image_size") != 0 {
		force = side(c, 448, "force_image_size")
	}
	m := &internVLChat{tower: readInternViT(c.sub("vision_config"), force)}
	if m.tower.image.count() == 0 {
		c.fail("force_image_size", "%d pixels hold no patch of %d × %d", force, m.tower.table.height, m.tower.table.width)
	}
	m.shuffle = pixelShuffle(c, m.tower.image)
	m.wide = c.product("downsample_ratio", m.shuffle*m.shuffle, m.tower.dim)
	m.image = func(states []string) string { return hiddenState(c, "select_layer", states) }
	m.readText(c.sub("llm_config"))
	return m
}

// chatModels are the language models of Transformers that llm_config may
// name. The config's class never ties the head to the embedding.
var chatModels = map[string]func(*config) *decoder{
	"LlamaForCausalLM":    llama,
	"Phi3ForCausalLM":     phi3,
	"Qwen2ForCausalLM":    qwen2,
	"Qwen3ForCausalLM":    qwen3,
	"Qwen3MoeForCausalLM": qwen3MoE,
	"GptOssForCausalLM":   gptOSS,
}

const internLM2Class = "InternLM2ForCausalLM"

// readText reads the language model that llm_config's architectures names.
func (m *internVLChat) readText(c *config) {
	class := ""
	if names := c.strs("architectures"); len(names) > 0 {
		class = names[0]
	}
	const path = "language_model.model"
	switch read := chatModels[class]; {
	case class == internLM2Class:
		llm := readInternLM2(c)
		llm.cached(c.pos(2048, "max_position_embeddings"))
		m.out = llm.hidden
		m.text = func(b *builder) string {
			llm.stack(b, path)
			addVocabHead(b, "language_model.output", llm.hidden, llm.vocab, "")
			return path + ".tok_embeddings"
		}
	case read != nil:
		llm := read(c)
		m.out = llm.hidden
		m.text = func(b *builder) string {
			llm.build(b, path)
			addVocabHead(b, "language_model.lm_head", llm.hidden, llm.vocab, "")
			return path + ".embed_tokens"
		}
	default:
		c.fail("architectures[0]", "%q is not a language model that is known here (known: %s, %s)",
			class, internLM2Class, strings.Join(slices.Sorted(maps.Keys(chatModels)), ", "))
	}
}

// build adds the modules. The projector stands last but feeds the language
// model's first block.
func (m *internVLChat) build(b *builder) {
	if m.text == nil {
		return // the config is at fault
	}
	image := m.image(m.tower.build(b, "vision_model"))
	from := len(b.layers)
	embed := m.text(b)
	b.on(imageStream(max(1, m.tower.image.count()/(m.shuffle*m.shuffle))), func() {
		image = addLayerNorm(b, "mlp1.0", m.wide, image)
		image = addLinear(b, "mlp1.1", m.wide, m.out, "gelu", image)
		b.empty("mlp1.2") // GELU
		image = addLinear(b, "mlp1.3", m.out, m.out, "", image)
	})
	feed(b, from, embed, image)
}
