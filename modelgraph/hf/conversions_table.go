package hf

import (
	"regexp"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// conversions are the rules of the families that have some, by model type,
// in the order of conversion_mapping.py: get_model_conversion_mapping, which
// asks the class and then the model type of each sub-model.
var conversions = map[string]func(l *loading, c *config, class string){
	"mixtral":     func(l *loading, _ *config, _ string) { l.text("mixtral", "") },
	"qwen3_moe":   func(l *loading, _ *config, _ string) { l.text("qwen3_moe", "") },
	"deepseek_v3": func(l *loading, _ *config, _ string) { l.text("deepseek_v3", "") },
	"gemma3":      func(l *loading, c *config, class string) { l.llava(c, class, true) },
	"paligemma":   func(l *loading, c *config, class string) { l.llava(c, class, true) },
	"internvl":    func(l *loading, c *config, class string) { l.llava(c, class, false) },
	"qwen2_5_vl":  qwen2VLNames,
	"vit":         vitNames,
	"internvl_chat": func(l *loading, c *config, _ string) {
		l.prefix = ""
		l.text(c.sub("llm_config").str("", "model_type"), "language_model")
	},
}

// prefixes are base_model_prefix where it is not "model".
var prefixes = map[string]string{
	"gpt2": "transformer", "bloom": "transformer", "t5": "transformer", "mamba": "backbone",
	"bert": "bert", "vit": "vit", "internvl_vision": "internvl_vision",
}

// Names that the framework leaves out without a word
// (_keys_to_ignore_on_load_unexpected).
var (
	ignoreInvFreq     = regexp.MustCompile(`rotary_emb\.inv_freq`)
	ignorePositionIDs = regexp.MustCompile(`(^|\.)position_ids$`)
	ignoreCausalMask  = regexp.MustCompile(`attn.bias|crossattention.bias`)
	ignoreMTP         = regexp.MustCompile(`model\.layers\.61.*`)
	ignoreDecoder     = regexp.MustCompile(`decoder`)
	ignoreCrossBias   = regexp.MustCompile(`decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight`)
)

// legacy are the oldest spellings, tried for every model.
var legacy = []rename{
	within("LayerNorm.gamma", "LayerNorm.weight"),
	within("LayerNorm.beta", "LayerNorm.bias"),
	atEnd(".weight_g", ".parametrizations.weight.original0"),
	atEnd(".weight_v", ".parametrizations.weight.original1"),
}

// loadingOf collects the rules for a graph of one class.
func loadingOf(g *modelgraph.Graph, c *config) *loading {
	l := &loading{prefix: "model"}
	if p, ok := prefixes[g.Family]; ok {
		l.prefix = p
	} else if isTask(g.Class, questionAnswering) {
		l.prefix = answeringPath(g.Class)
	}
	if add := conversions[g.Family]; add != nil {
		add(l, c, g.Class)
	}
	l.renames = append(l.renames, legacy...)
	l.ignore = ignoredNames(g)
	return l
}

// ignoredNames lists the patterns of the class; two of them hold wherever the
// model has such a buffer itself (_adjust_missing_and_unexpected_keys).
func ignoredNames(g *modelgraph.Graph) []*regexp.Regexp {
	var res []*regexp.Regexp
	switch {
	case g.Family == "gpt2":
		res = append(res, ignoreCausalMask)
	case g.Family == "deepseek_v3":
		res = append(res, ignoreMTP)
	case g.Class == "T5EncoderModel" || g.Class == "T5ForTokenClassification":
		res = append(res, ignoreDecoder)
	case g.Family == "t5":
		res = append(res, ignoreCrossBias)
	}
	if hasBuffer(g, "rotary_emb.inv_freq") {
		res = append(res, ignoreInvFreq)
	}
	if hasBuffer(g, "position_ids") {
		res = append(res, ignorePositionIDs)
	}
	return res
}

func hasBuffer(g *modelgraph.Graph, suffix string) bool {
	return slices.ContainsFunc(g.Layers, func(l modelgraph.Layer) bool {
		return slices.ContainsFunc(l.Buffers, func(t modelgraph.Tensor) bool {
			return strings.HasSuffix(modelgraph.FullName(l.Name, t.Name), suffix)
		})
	})
}
