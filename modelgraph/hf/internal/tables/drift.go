package tables

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/devmap-dev/devmap/modelgraph/hf/internal/spell"
)

// treeFacts are a release's results for a config, as lines.
type treeFacts struct {
	names  []string // with shapes, sorted
	params int64
	others []string // ties, modules that are not split
	wide   []string // expressions for parameters that stay in float32
}

func (tree *Tree) facts() *treeFacts {
	facts := &treeFacts{wide: tree.wide}
	for i := range tree.Tensors {
		t := &tree.Tensors[i]
		switch owner := tree.Ties[t.Name]; {
		case t.Buffer:
		case owner != "":
			facts.others = append(facts.others, t.Name+" = "+owner)
		default:
			facts.names = append(facts.names, fmt.Sprintf("%s %v", t.Name, t.Shape))
			facts.params += Elements(t.Shape)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tree.Units)) {
		if class := tree.Units[name]; class == "" || slices.Contains(tree.NoSplit, class) {
			facts.others = append(facts.others, name)
		}
	}
	slices.Sort(facts.names)
	slices.Sort(facts.others)
	return facts
}

// Compared describes in one line how other releases read the config of a tree differently. build
// makes their trees.
func (in *Release) Compared(tree *Tree, kind string, build func(other *Release) (*Tree, error)) string {
	facts, done := sync.OnceValue(tree.facts), *in.span
	said := make(map[string][]string)
	var order []string
	for _, r := range Releases {
		if done>>r.At&1 == 1 {
			continue
		}
		var what string
		other := r.Alone()
		made, err := build(other)
		span := *other.span
		switch {
		case err != nil && other.ConfigOf(kind) == "":
			what, span = "lack the type", 1<<r.At
		case err != nil: // its table does not know
			continue
		default:
			what = facts().unlike(made.facts())
		}
		for _, same := range Releases {
			if span>>same.At&1 == 1 && done>>same.At&1 == 0 {
				done |= 1 << same.At
				if what != "" {
					if said[what] == nil {
						order = append(order, what)
					}
					said[what] = append(said[what], same.Name)
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
	return fmt.Sprintf("the answer is that of Transformers %s; %s (--transformers selects one)", in.Name, strings.Join(parts, "; "))
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
				return fmt.Sprintf("have other names of as many parameters (%q)", spell.Clip(name))
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

// TimmNote names a buffer that only timm 1.0.31 keeps: the frequencies of a rotary embedding for one
// image size (RotaryEmbeddingCat, timm/layers/pos_embed_sincos.py). Releases of Transformers do not
// choose timm's version.
func TimmNote(tree *Tree) string {
	var first string
	n, size := 0, int64(0)
	for i := range tree.Tensors {
		if t := &tree.Tensors[i]; t.Buffer && strings.HasSuffix(t.Name, "timm_model.rope.bands") {
			first, n, size = cmp.Or(first, t.Name), n+1, size+Elements(t.Shape)
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("timm: the answer is that of timm 1.0.31; 1.0.30 and older have no buffer %q (%d such, %d numbers)", first, n, size)
}

// Elements is the product of the sides of a shape.
func Elements(shape []int64) int64 {
	count := int64(1)
	for _, d := range shape {
		count *= d
	}
	return count
}
