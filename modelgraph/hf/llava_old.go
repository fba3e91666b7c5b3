package hf

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	for _, kind := range []struct {
		model, class string
		read         func(*config) *decoder
	}{
		{"llava_llama", "LlavaLlamaForCausalLM", llama},
		{"llava_mistral", "LlavaMistralForCausalLM", mistral},
	} {
		ownTypes[kind.class] = kind.model
		register(family{
			types: []string{kind.model}, classes: []string{kind.class},
			build: func(modules *builder, cfg *config, _ string) { oldLlava(modules, cfg, kind.read(cfg)) },
			unread: strings.Fields(`freeze_mm_mlp_adapter freeze_mm_vision_resampler image_aspect_ratio image_crop_resolution image_grid_pinpoints
image_split_resolution mm_projector_lr mm_use_im_patch_token mm_use_im_start_end mm_vision_select_layer mm_vision_tower_lr tokenizer_model_max_length
tokenizer_padding_side tune_mm_mlp_adapter tune_mm_vision_resampler use_mm_proj mm_patch_merge_type mm_resampler_type`),
		})
	}
}

// oldLlava is llava/model/llava_arch.py of LLaVA 1.5 (LlavaMetaModel) around a language model: a
// projector after it. The vision tower of mm_vision_tower has its own files, which are read after
// the model is built (CLIPVisionTower with delay_load, load_model). So it is not in the model's
// tensors or device map.
func oldLlava(modules *builder, cfg *config, words *decoder) {
	tower := cfg.name("mm_vision_tower")
	if tower == "" {
		tower = cfg.name("vision_tower")
	}
	if cfg.has("unfreeze_mm_vision_tower") && cfg.flag("unfreeze_mm_vision_tower") {
		cfg.fail("unfreeze_mm_vision_tower", "true makes %q a part of the model, whose sizes the file does not have", tower)
	}
	if resampler := cfg.name("mm_resampler_type"); resampler != "" {
		cfg.fail("mm_resampler_type", "%q is not known here", clipName(resampler))
	}
	if strings.Contains(cfg.name("mm_patch_merge_type"), "unpad") { // ends every row of patches
		modules.add("model.image_newline", modelgraph.Parameter{}, nil, tensor("", words.hidden))
	}
	from := len(modules.layers)
	words.build(modules, "model")
	if tower != "" {
		last := modules.hidden
		modules.empty("model.vision_tower")
		modules.on(imageStream(namedPatches(cfg, tower)), func() {
			feed(modules, from, "model.embed_tokens", oldProjector(modules, cfg, words.hidden))
		})
		modules.hidden = last
		modules.warnings = append(modules.warnings, fmt.Sprintf("the vision tower %q is loaded apart from the model, on a device of its own choice: neither its weights nor what it computes is counted", clipName(tower)))
	}
	tied := ""
	if cfg.bool(false, "tie_word_embeddings") {
		tied = "model.embed_tokens.weight"
	}
	addVocabHead(modules, "lm_head", words.hidden, words.vocab, tied)
}

// patchesInName matches the sides of a patch and of an image in names of towers:
// openai/clip-vit-large-patch14-336.
var patchesInName = regexp.MustCompile(`patch(\d{1,3})(?:-(\d{2,4}))?$`)

// namedPatches is the tokens an image. OpenAI's towers without a size in the name take 224 pixels.
func namedPatches(cfg *config, tower string) int64 {
	const name = "mm_vision_tower"
	said := patchesInName.FindStringSubmatch(tower)
	if said == nil {
		cfg.fail(name, "%q does not say how many patches it makes of an image (…-patch14-336 would)", clipName(tower))
		return 1
	}
	patch, _ := strconv.ParseInt(said[1], 10, 64)
	side := int64(224)
	if said[2] != "" {
		side, _ = strconv.ParseInt(said[2], 10, 64)
	}
	if patch < 1 || patch > side {
		cfg.fail(name, "%q: a patch of %d pixels in an image of %d", clipName(tower), patch, side)
		return 1
	}
	count := (side / patch) * (side / patch)
	switch feature := cfg.str("patch", "mm_vision_select_feature"); feature {
	case "patch":
	case "cls_patch":
		count++
	default:
		cfg.fail("mm_vision_select_feature", "%q is not patch or cls_patch", clipName(feature))
	}
	return count
}

// deepProjector is the type of a projector with several matrices.
var deepProjector = regexp.MustCompile(`^mlp(\d{1,2})x_gelu$`)

// oldProjector is build_vision_projector (multimodal_projector/builder.py): one matrix, or several
// with GELU between them. The tower makes its input and is not among the layers.
func oldProjector(modules *builder, cfg *config, hidden int64) string {
	const name = "model.mm_projector"
	in, kind := cfg.pos(0, "mm_hidden_size"), cfg.str("linear", "mm_projector_type")
	project := func(name string, in int64, activation string, inputs []string) string {
		return modules.add(name, modelgraph.Linear{In: in, Out: hidden, Activation: activation}, inputs, linearParams("", in, hidden, true)...).Name
	}
	if kind == "linear" {
		return project(name, in, "", nil)
	}
	deep := deepProjector.FindStringSubmatch(kind)
	if len(deep) == 0 || deep[1] == "0" {
		cfg.fail("mm_projector_type", "%q is not known here (known: linear, mlp2x_gelu and the like)", clipName(kind))
		return ""
	}
	depth, _ := strconv.ParseInt(deep[1], 10, 64)
	var inputs []string
	image := ""
	for i := range depth {
		activation := "gelu"
		if i == depth-1 {
			activation = ""
		}
		image = project(indexed(name, 2*i), in, activation, inputs)
		if activation != "" {
			modules.empty(indexed(name, 2*i+1))
		}
		in, inputs = hidden, []string{image}
	}
	return image
}
