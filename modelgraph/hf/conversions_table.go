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
var conversions = map[string]func(load *loading, cfg *config, class string){
	"mixtral":     func(load *loading, _ *config, _ string) { load.text("mixtral", "") },
	"qwen3_moe":   func(load *loading, _ *config, _ string) { load.text("qwen3_moe", "") },
	"deepseek_v3": func(load *loading, _ *config, _ string) { load.text("deepseek_v3", "") },
	"gemma3":      func(load *loading, cfg *config, class string) { load.llava(cfg, class, true) },
	"paligemma":   func(load *loading, cfg *config, class string) { load.llava(cfg, class, true) },
	"internvl":    func(load *loading, cfg *config, class string) { load.llava(cfg, class, false) },
	"qwen2_5_vl":  qwen2VLNames,
	"vit":         vitNames,
	"internvl_chat": func(load *loading, cfg *config, _ string) {
		load.prefix = ""
		load.text(cfg.sub("llm_config").str("", "model_type"), "language_model")
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
func loadingOf(graph *modelgraph.Graph, cfg *config) *loading {
	if f := families[graph.Family]; f != nil && f.table && !f.named {
		if load := tableLoading(graph.Family, graph.Class); load != nil {
			load.ignore = append(load.ignore, ignoredNames(graph)...)
			return load
		}
	}
	load := &loading{prefix: "model"}
	if prefix, ok := prefixes[graph.Family]; ok {
		load.prefix = prefix
	} else if isTask(graph.Class, questionAnswering) {
		load.prefix = answeringPath(graph.Class)
	}
	if add := conversions[graph.Family]; add != nil {
		add(load, cfg, graph.Class)
	}
	load.renames = append(load.renames, legacy...)
	load.ignore = ignoredNames(graph)
	return load
}

// ignoredNames lists the patterns of the class; two of them hold wherever the
// model has such a buffer itself (_adjust_missing_and_unexpected_keys).
func ignoredNames(graph *modelgraph.Graph) []*regexp.Regexp {
	var res []*regexp.Regexp
	switch {
	case graph.Family == "gpt2":
		res = append(res, ignoreCausalMask)
	case graph.Family == "deepseek_v3":
		res = append(res, ignoreMTP)
	case graph.Class == "T5EncoderModel" || graph.Class == "T5ForTokenClassification":
		res = append(res, ignoreDecoder)
	case graph.Family == "t5":
		res = append(res, ignoreCrossBias)
	}
	if hasBuffer(graph, "rotary_emb.inv_freq") {
		res = append(res, ignoreInvFreq)
	}
	if hasBuffer(graph, "position_ids") {
		res = append(res, ignorePositionIDs)
	}
	return res
}

func hasBuffer(graph *modelgraph.Graph, suffix string) bool {
	return slices.ContainsFunc(graph.Layers, func(layer modelgraph.Layer) bool {
		return slices.ContainsFunc(layer.Buffers, func(t modelgraph.Tensor) bool {
			return strings.HasSuffix(modelgraph.FullName(layer.Name, t.Name), suffix)
		})
	})
}
