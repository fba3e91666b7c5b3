package hf

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// treeFacts are a release's results for a config, as lines.
type treeFacts struct {
	names  []string // with shapes, sorted
	params int64
	others []string // ties, modules that are not split
	wide   []string // expressions for parameters that stay in float32
}

func (tree *typeTree) facts() *treeFacts {
	facts := &treeFacts{wide: tree.wide}
	for i := range tree.tensors {
		t := &tree.tensors[i]
		switch owner := tree.ties[t.name]; {
		case t.buffer:
		case owner != "":
			facts.others = append(facts.others, t.name+" = "+owner)
		default:
			facts.names = append(facts.names, fmt.Sprintf("%s %v", t.name, t.shape))
			facts.params += elements(t.shape)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tree.units)) {
		if class := tree.units[name]; class == "" || slices.Contains(tree.noSplit, class) {
			facts.others = append(facts.others, name)
		}
	}
	slices.Sort(facts.names)
	slices.Sort(facts.others)
	return facts
}

// compared describes in one line how other releases read the config of a tree differently. build
// makes their trees.
func (in *release) compared(tree *typeTree, kind string, build func(other *release) (*typeTree, error)) string {
	facts, done := sync.OnceValue(tree.facts), *in.span
	said := make(map[string][]string)
	var order []string
	for _, r := range releases {
		if done>>r.at&1 == 1 {
			continue
		}
		var what string
		other := r.alone()
		made, err := build(other)
		span := *other.span
		switch {
		case err != nil && other.configOf(kind) == "":
			what, span = "lack the type", 1<<r.at
		case err != nil: // its table does not know
			continue
		default:
			what = facts().unlike(made.facts())
		}
		for _, same := range releases {
			if span>>same.at&1 == 1 && done>>same.at&1 == 0 {
				done |= 1 << same.at
				if what != "" {
					if said[what] == nil {
						order = append(order, what)
					}
					said[what] = append(said[what], same.name)
				}
			}
		}
	}
	var parts []string
	for _, what := range order {
		who := "releases " + strings.Join(said[what], ", ")
		if len(said[what]) == 1 {
			verb, rest, _ := strings.Cut(what, " ")
			who, what = "release "+said[what][0], strings.Replace(verb+"s", "haves", "has", 1)+" "+rest
		}
		parts = append(parts, who+" "+what)
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("the answer is that of Transformers %s; %s (--transformers selects one)", in.name, strings.Join(parts, "; "))
}

// unlike describes how another release's result differs; empty if it does not.
func (facts *treeFacts) unlike(other *treeFacts) string {
	switch {
	case facts.params != other.params:
		return fmt.Sprintf("make %d parameters, not %d", other.params, facts.params)
	case !slices.Equal(facts.names, other.names):
		for i := range other.names {
			if i >= len(facts.names) || other.names[i] != facts.names[i] {
				name, _, _ := strings.Cut(other.names[i], " ")
				return fmt.Sprintf("have other names of as many parameters (%q)", clipName(name))
			}
		}
		return "have fewer names of as many parameters"
	case !slices.Equal(facts.others, other.others):
		return "have other ties or modules that are not split"
	case !slices.Equal(facts.wide, other.wide):
		return "keep other parameters in float32"
	}
	return ""
}

// timmNote names a buffer that only timm 1.0.31 keeps: the frequencies of a rotary embedding for one
// image size (RotaryEmbeddingCat, timm/layers/pos_embed_sincos.py). Releases of Transformers do not
// choose timm's version.
func timmNote(tree *typeTree) string {
	var first string
	n, size := 0, int64(0)
	for i := range tree.tensors {
		if t := &tree.tensors[i]; t.buffer && strings.HasSuffix(t.name, "timm_model.rope.bands") {
			first, n, size = cmp.Or(first, t.name), n+1, size+elements(t.shape)
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("timm: the answer is that of timm 1.0.31; 1.0.30 and older have no buffer %q (%d such, %d numbers)", first, n, size)
}

func elements(shape []int64) int64 {
	count := int64(1)
	for _, d := range shape {
		count *= d
	}
	return count
}
