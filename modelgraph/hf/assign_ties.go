package hf

import "slices"

// share resolves the parameters that the config ties (modeling_utils.py: tie_weights). A stored one
// fills the others. If several are stored, the framework ties those with equal values. Headers have
// no values, so these stay tied if types and sizes agree.
func (assigned *assignment) share() {
	var remaining [][]string
	for _, group := range assigned.ties {
		if group = assigned.shareGroup(group); len(group) > 1 {
			remaining = append(remaining, group)
		}
	}
	assigned.ties = remaining
}

// shareGroup returns the names that stay tied.
func (assigned *assignment) shareGroup(group []string) []string {
	first := slices.IndexFunc(group, func(name string) bool { return len(assigned.state[name].pieces) > 0 })
	if first < 0 {
		return group
	}
	source := assigned.state[group[first]]
	var tied, copies []string
	for _, name := range group {
		fill := assigned.state[name]
		if fill != source && len(fill.pieces) > 0 {
			if !assigned.sameStored(source, fill) {
				assigned.warn("the config ties %q to %q, but the files hold both and they differ: counted apart, as the framework loads them", name, source.name)
				continue
			}
			copies = append(copies, name)
		}
		fill.shared = true
		t := fill.tensor
		t.DType, t.Shape, t.Parts = source.tensor.DType, source.tensor.Shape, source.tensor.Parts
		tied = append(tied, name)
	}
	if len(copies) > 0 {
		assigned.warn("%q and %q are tied and stored more than once: counted once (a framework counts copies with different values separately)", source.name, copies)
	}
	return tied
}

// sameStored reports whether two stored tensors can have the same values: one type and size. A T5
// config with an untied head (v1.1: T5Config ties it anyway) means that they differ.
func (assigned *assignment) sameStored(x, y *filling) bool {
	if assigned.graph.Family == "t5" && !assigned.config.bool(true, "tie_word_embeddings") && y.name == "lm_head.weight" {
		return false
	}
	if len(x.pieces) != 1 || len(y.pieces) != 1 {
		return false
	}
	s, t := x.pieces[0].stored, y.pieces[0].stored
	return s.DType == t.DType && s.Bytes() == t.Bytes()
}
