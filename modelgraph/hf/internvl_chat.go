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
		build: func(modules *builder, cfg *config, _ string) {
			readInternVLChat(cfg).build(modules)
		},
		maxSeq: func(cfg *config) int64 { return cfg.sub("llm_config").dim(0, "max_position_embeddings") },
	})
}

// internVLChat is InternVL 2 and 2.5 of OpenGVLab, with the names of the checkpoints' code
// (modeling_internvl_chat.py: InternVLChatModel). An image is one tile.
//
// Its _no_split_modules are InternVisionModel, LlamaDecoderLayer, InternLM2DecoderLayer and, in
// later copies, Phi3DecoderLayer and Qwen2DecoderLayer. So the vision tower is one unit, although
// its own class allows splits between blocks.
type internVLChat struct {
	tower   *remoteInternViT
	shuffle int64 // patches along a token's side
	wide    int64 // channels of a token before the projector
	out     int64 // hidden size of the language model
	// image names the tower's hidden state that the language model gets.
	image func(states []string) string
	// text adds the language model and names its token embedding.
	text func(modules *builder) string
}

// readInternVLChat reads an InternVLChatConfig.
func readInternVLChat(cfg *config) *internVLChat {
	force := int64(0)
	if cfg.dim(0, "force_image_size") != 0 {
		force = side(cfg, 448, "force_image_size")
	}
	chat := &internVLChat{tower: readInternViT(cfg.sub("vision_config"), force)}
	if chat.tower.image.count() == 0 {
		cfg.fail("force_image_size", "%d pixels hold no patch of %d × %d", force, chat.tower.table.height, chat.tower.table.width)
	}
	chat.shuffle = pixelShuffle(cfg, chat.tower.image)
	chat.wide = cfg.product("downsample_ratio", chat.shuffle*chat.shuffle, chat.tower.dim)
	chat.image = func(states []string) string { return hiddenState(cfg, "select_layer", states) }
	chat.readText(cfg.sub("llm_config"))
	return chat
}

// chatModels are the language models of Transformers that llm_config may name. The config's class
// never ties the head to the embedding.
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
func (chat *internVLChat) readText(cfg *config) {
	class := ""
	if names := cfg.strs("architectures"); len(names) > 0 {
		class = names[0]
	}
	const path = "language_model.model"
	switch read := chatModels[class]; {
	case class == internLM2Class:
		llm := readInternLM2(cfg)
		llm.cached(cfg.pos(2048, "max_position_embeddings"))
		chat.out = llm.hidden
		chat.text = func(modules *builder) string {
			llm.stack(modules, path)
			addVocabHead(modules, "language_model.output", llm.hidden, llm.vocab, "")
			return path + ".tok_embeddings"
		}
	case read != nil:
		llm := read(cfg)
		chat.out = llm.hidden
		chat.text = func(modules *builder) string {
			llm.build(modules, path)
			addVocabHead(modules, "language_model.lm_head", llm.hidden, llm.vocab, "")
			return path + ".embed_tokens"
		}
	default:
		cfg.fail("architectures[0]", "%q is not a language model that is known here (known: %s, %s)",
			class, internLM2Class, strings.Join(slices.Sorted(maps.Keys(chatModels)), ", "))
	}
}

// build adds the modules. The projector comes last but feeds the language model's first block.
//
// forward adds its output to the token embeddings, and indexes both by masks of the call's tensors.
// Accelerate's root hook puts these on the map's first device, the tower's. It moves none of them
// (modeling_internvl_chat.py: vit_embeds[image_flags == 1], input_embeds[selected] * 0.0 +
// vit_embeds). So the three must be on one device, as in split_model on the model's page.
func (chat *internVLChat) build(modules *builder) {
	if chat.text == nil {
		return // the config is at fault
	}
	image := chat.image(chat.tower.build(modules, "vision_model"))
	first := modules.layers[0].Name
	from := len(modules.layers)
	embed := chat.text(modules)
	projector := len(modules.layers)
	modules.on(imageStream(max(1, chat.tower.image.count()/(chat.shuffle*chat.shuffle))), func() {
		image = addLayerNorm(modules, "mlp1.0", chat.wide, image)
		image = addLinear(modules, "mlp1.1", chat.wide, chat.out, "gelu", image)
		modules.empty("mlp1.2") // GELU
		image = addLinear(modules, "mlp1.3", chat.out, chat.out, "", image)
	})
	feed(modules, from, embed, image)
	modules.join(projector, first, embed)
}
