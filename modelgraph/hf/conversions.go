package hf

import (
	"regexp"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// loadingOf collects the rules for a graph of one class, in the order of conversion_mapping.py:
// get_model_conversion_mapping. Each model in the tree brings the rules of its class, else of its
// type, for names below its path. Rules that an outer model brought do not apply twice.
func loadingOf(graph *modelgraph.Graph, cfg *config) *loading {
	class := classNames(graph.Class, graph.Family)
	load := &loading{prefix: class.Prefix}
	brought := make(map[string][]string) // by class or type: the paths of the models that brought its rules
	class.models(cfg, func(path string, model *namedModel, child bool) {
		load.bring(brought, path, model.Class, model.Type)
		if child {
			load.leave(model.Ignored)
		}
	})
	load.add(rulesOf("legacy"), nil)
	if graph.Family == "dinov2" && cfg.since("5.18") {
		load.renames = append(load.renames, laterDinov2.Replace)
	}
	load.ignore = append(load.ignore, bufferNames(graph)...)
	return load
}

// laterDinov2 renames checkpoint tensors for Transformers 5.18.
var laterDinov2 = strings.NewReplacer(".attention.attention.query.", ".attention.q_proj.", ".attention.attention.key.", ".attention.k_proj.",
	".attention.attention.value.", ".attention.v_proj.", ".attention.output.dense.", ".attention.o_proj.")

// bring adds the rules of one model in the tree.
func (load *loading) bring(brought map[string][]string, path, class, modelType string) {
	above := func(name string) bool {
		return slices.ContainsFunc(brought[name], func(seen string) bool { return seen == "" || strings.HasPrefix(path, seen+".") })
	}
	if above(class) {
		return
	}
	rules := rulesOf(class)
	byClass := rules != nil
	if !byClass {
		if above(modelType) {
			return
		}
		rules = rulesOf(modelType)
	}
	if rules == nil {
		return
	}
	var below *scope
	if path != "" {
		// Without a dot after it, as Transformers removes it.
		below = newScope(load.prefix, strings.TrimPrefix(strings.TrimPrefix(path, load.prefix), "."))
	}
	load.add(rules, below)
	brought[class] = append(brought[class], path)
	if !byClass {
		brought[modelType] = append(brought[modelType], path)
	}
}

func (load *loading) add(rules []nameRule, below *scope) {
	for i := range rules {
		if rules[i].Unread {
			load.unread = append(load.unread, rules[i].To...)
			continue
		}
		rule := newTransform(&rules[i], below)
		if rule.converts {
			load.converters = append(load.converters, rule)
		} else {
			load.renames = append(load.renames, rule.rename)
		}
	}
}

// leave adds names that are skipped without a warning. Go has no lookahead: a name with an
// expression that needs it is reported as left over.
func (load *loading) leave(exprs []string) {
	for _, expr := range exprs {
		if re, err := regexp.Compile(expr); err == nil {
			load.ignore = append(load.ignore, re)
		}
	}
}

// Names that apply if the model itself has such a buffer (_adjust_missing_and_unexpected_keys).
var (
	ignoreInvFreq     = regexp.MustCompile(`rotary_emb\.inv_freq`)
	ignorePositionIDs = regexp.MustCompile(`(^|\.)position_ids$`)
)

// bufferNames are the names of buffers in older checkpoints.
func bufferNames(graph *modelgraph.Graph) []*regexp.Regexp {
	var res []*regexp.Regexp
	for suffix, expr := range map[string]*regexp.Regexp{"rotary_emb.inv_freq": ignoreInvFreq, "position_ids": ignorePositionIDs} {
		if hasBuffer(graph, suffix) {
			res = append(res, expr)
		}
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
