package hf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
)

// tie adds tied tensors that are not stored (modeling_utils.py: tie_weights), and marks stored
// tensors that may be tied.
func (l *listed) tie() error {
	for _, group := range joined(slices.Concat(l.class.Ties, l.class.AlwaysTied)) {
		if i := slices.IndexFunc(group, func(name string) bool { return strings.Contains(name, "*") }); i >= 0 {
			if l.tied || l.always(group[i], group[i]) {
				return &unprovenError{l.dir, fmt.Sprintf("%s ties %q to another, and the files do not tell how many there are", l.class.Class, group[i])}
			}
			continue
		}
		var here, missing []string
		for _, name := range group {
			if l.tensors[name] != nil {
				here = append(here, name)
			} else {
				missing = append(missing, name)
			}
		}
		if len(here) > 0 { // else complete reports the missing tensors
			l.tieGroup(here, missing)
		}
	}
	return nil
}

// joined merges groups that share a name.
func joined(groups [][]string) [][]string {
	var out [][]string
	for _, group := range groups {
		at := slices.IndexFunc(out, func(g []string) bool {
			return slices.ContainsFunc(group, func(name string) bool { return slices.Contains(g, name) })
		})
		if at < 0 {
			out = append(out, slices.Clone(group))
			continue
		}
		for _, name := range group {
			if !slices.Contains(out[at], name) {
				out[at] = append(out[at], name)
			}
		}
	}
	if len(out) < len(groups) {
		return joined(out) // a joined group may meet another
	}
	return out
}

// always reports two names that are one tensor under every config.
func (l *listed) always(x, y string) bool {
	return slices.ContainsFunc(l.class.AlwaysTied, func(group []string) bool { return slices.Contains(group, x) && slices.Contains(group, y) })
}

// any reports whether a tensor of the pattern is stored.
func (l *listed) any(pattern string) bool {
	for name := range l.tensors {
		if l.pats.Match(name) == pattern {
			return true
		}
	}
	return false
}

func (l *listed) tieGroup(here, missing []string) {
	source := l.tensors[here[0]]
	tied := []string{source.name}
	for _, name := range here[1:] {
		t, u := source.pieces[0], l.tensors[name].pieces[0]
		if !l.tied && !l.always(source.name, name) || t.DType != u.DType || !slices.Equal(t.Shape, u.Shape) {
			continue
		}
		l.tensors[name].like = source
		tied = append(tied, name)
		l.warnings = append(l.warnings, fmt.Sprintf("%q and %q may be tied and are both stored: counted once (the framework counts them apart if their values differ, which headers do not tell)", source.name, name))
	}
	for _, name := range missing {
		if !l.tied && !l.always(source.name, name) {
			continue // newly initialised, or not there: complete asks
		}
		l.tensors[name] = &moduleTensor{name: name, like: source}
		l.note(name)
		tied = append(tied, name)
	}
	if len(tied) > 1 {
		l.ties = append(l.ties, tied)
	}
}

// complete refuses files without tensors that the class has by default and that no key of the map
// would name. A config may omit them, but the files do not prove that. It adds modules of buffers
// alone.
func (l *listed) complete(buffers []string) error {
	for _, pattern := range l.needs {
		if !l.covered(pattern) {
			return l.lacks(pattern)
		}
	}
	for _, pattern := range buffers {
		if l.covered(pattern) {
			continue
		}
		if l.class.Buffers[pattern] && !strings.Contains(pattern, "*") && l.inUnit(pattern) == "" {
			// Small, and in the state dict: the key alone is needed.
			l.tensors[pattern] = &moduleTensor{name: pattern}
			continue
		}
		for _, name := range l.instances(pattern) {
			l.tensors[name] = &moduleTensor{name: name}
		}
	}
	return nil
}

func (l *listed) lacks(pattern string) error {
	return &unprovenError{l.dir, fmt.Sprintf("no file holds %q, which %s has in Transformers %s", pattern, l.class.Class, l.in)}
}

// covered reports whether a key of the map covers a tensor of the pattern. The tensor is stored, or
// its module has stored tensors or is inside a no-split module.
func (l *listed) covered(pattern string) bool {
	if l.tensors[pattern] != nil {
		return true
	}
	if unit := l.inUnit(pattern); unit != "" {
		return len(l.counted[unit]) > 0 || l.modulesBelow(unit)
	}
	module := paths.Parent(pattern)
	if module == "" || l.hasModules(module) { // a bare tensor has its own key
		return l.any(pattern)
	}
	return l.modules[module]
}

func (l *listed) modulesBelow(unit string) bool {
	for module := range l.modules {
		if module == unit || strings.HasPrefix(module, unit+".") {
			return true
		}
	}
	return false
}

// instances are the names that a pattern has, by the members of its lists that are stored.
func (l *listed) instances(pattern string) []string {
	star := strings.LastIndexByte(pattern, '*')
	if star < 0 {
		return []string{pattern}
	}
	var out []string
	for _, prefix := range l.counted[pattern[:star+1]] {
		out = append(out, prefix+pattern[star+1:])
	}
	return out
}

// hasModules reports whether a module, or a pattern of one, has modules below it. Its own tensors
// then have separate keys.
func (l *listed) hasModules(module string) bool {
	nodes := l.pats.Walk(module)
	if len(nodes) != strings.Count(module, ".")+1 {
		return false
	}
	for _, child := range nodes[len(nodes)-1].Children {
		if len(child.Children) > 0 {
			return true
		}
	}
	return false
}
