package hf

import (
	"math"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	register(family{
		runs:    true,
		types:   []string{"gemma3"},
		class:   "Gemma3ForConditionalGeneration",
		classes: []string{"Gemma3ForConditionalGeneration", "Gemma3Model", "Gemma3ForSequenceClassification"},
		build: func(modules *builder, cfg *config, class string) {
			gemma3VL(cfg).build(modules, cfg, class)
		},
		maxSeq: textMaxSeq,
	})
}

// gemma3VL reads a Gemma3Config: SigLIP, a pooling projector, Gemma 3.
func gemma3VL(cfg *config) *multimodal {
	tower := siglipTower(cfg.sub("vision_config"))
	language := cfg.sub("text_config")
	language.kind("gemma3_text")
	text := gemma3Text(language).masked()
	tokens := gemma3Tokens(cfg, tower.grid)
	return &multimodal{
		text: text, returned: true,
		tied: cfg.bool(true, "tie_word_embeddings"),
		features: func(modules *builder, path string) string {
			_, image := tower.build(modules, dot(path, "vision_tower"))
			projector := dot(path, "multi_modal_projector")
			weight, norm := dot(projector, "mm_input_projection_weight"), dot(projector, "mm_soft_emb_norm")
			// The patches are averaged, normed and multiplied by a matrix, which is a bare
			// parameter and so precedes the norm.
			modules.on(imageStream(tokens), func() {
				modules.add(weight, modelgraph.Linear{In: tower.dim, Out: text.hidden}, []string{norm}, tensor("", tower.dim, text.hidden))
				modules.empty(dot(projector, "avg_pool"))
				modules.add(norm, modelgraph.Norm{Dim: tower.dim, Style: modelgraph.GemmaRMSNorm}, []string{image}, tensor("weight", tower.dim))
			})
			return weight
		},
	}
}

// gemma3Tokens is the number of tokens an image after average pooling (modeling_gemma3.py:
// Gemma3MultiModalProjector). The family's defaults have more tokens than patches: the module can
// be built, without pooling.
func gemma3Tokens(cfg *config, grid patchGrid) int64 {
	count := cfg.pos(256, "mm_tokens_per_image")
	perSide := int64(math.Sqrt(float64(count)))
	kernel := max(1, grid.columns/max(1, perSide))
	return (grid.rows / kernel) * (grid.columns / kernel)
}
