package tables

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
)

// together refuses optional tensors of one module that no build need have had together: absent by
// default, and without a common condition. Their order, and the effect of one on the other, are
// then not known. present are the existing entries. A config with the modules of a built one is
// accepted.
func (tree *Tree) together(class *Class, of *evaluation, present [][]any) error {
	err := tree.unlike(class, of, present)
	if err == nil || len(class.Shown) == 0 {
		return err
	}
	here := make(map[string]bool)
	for _, entry := range present {
		pattern, _ := entry[1].(string)
		for path := range prefixes(pattern) {
			here[path] = true
		}
	}
	for _, said := range class.Shown {
		given := func(name string) bool {
			usual, field := of.object.class.Fields[name]
			return !field || of.object.said[name] == nil || usual != nil || said[name] != nil
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(of.object.said)), func(name string) bool { return !given(name) }) && maps.Equal(here, tree.built(class, said)) {
			return nil
		}
	}
	return err
}

func (tree *Tree) unlike(class *Class, of *evaluation, present [][]any) error {
	shown := tree.built(class, nil)
	parts, order := optionalParts(present)
	siblings := make(map[string][]string)
	for _, path := range order {
		if parts[path].always || shown[path] {
			continue
		}
		for _, other := range siblings[paths.Parent(path)] {
			if !parts[path].meets(parts[other]) && !towers(parts[path].condition, parts[other].condition) && !class.showed(path, other) {
				return tree.apart(class, of, parts[path].condition, other, path, other)
			}
		}
		siblings[paths.Parent(path)] = append(siblings[paths.Parent(path)], path)
	}
	for _, entry := range present {
		path, _ := entry[1].(string)
		if shown[path] || entry[0] == "n" {
			continue
		}
		if err := tree.changed(class, of, entry, parts, shown); err != nil {
			return err
		}
	}
	return nil
}

// changed refuses an optional entry, absent by default, with a size that is null by default, next
// to siblings that differ from the default.
func (tree *Tree) changed(class *Class, of *evaluation, entry []any, parts map[string]*optionalPart, shown map[string]bool) error {
	path, _ := entry[1].(string)
	module, text := paths.Parent(paths.Parent(path)), fmt.Sprint(entry[2])
	for _, other := range class.Entries {
		name, _ := other[1].(string)
		if other[0] == "n" || name == path || paths.Parent(paths.Parent(name)) != module || shown[name] == (parts[name] != nil) {
			continue
		}
		state := "!" + name
		if parts[name] != nil {
			state = name
		}
		if fmt.Sprint(other[2]) != text && !towers(entry[2], other[2]) && !class.showed(path, state) {
			return tree.apart(class, of, other[2], name, path, state)
		}
	}
	if entry[0] != "p" && entry[0] != "b" {
		return nil
	}
	return sized(tree, class, of, entry, path, shown)
}

// sized refuses a size that is null by default and that no build had with a path. It accepts a size
// that the same module has by default: a bias is as long as its weight.
func sized(tree *Tree, class *Class, of *evaluation, entry []any, path string, shown map[string]bool) error {
	for _, name := range slices.Sorted(maps.Keys(of.object.class.Fields)) {
		if of.object.class.Fields[name] == nil && of.object.said[name] != nil && reads(entry[3], name) && !class.showed(path, "$"+name) && !class.sizes(entry, name, of, shown) {
			of.place = name
			return tree.unexplained(of, class, fmt.Sprintf("no build shows it together with %q", path), "together", path, "$"+name)
		}
	}
	return nil
}

// sizes reports that each size of an entry that reads a field (a number) is a size of a default
// tensor of its module.
func (class *Class) sizes(entry []any, name string, of *evaluation, shown map[string]bool) bool {
	path, _ := entry[1].(string)
	dims, _ := entry[3].([]any)
	_, isNumber := number(of.object.said[name])
	return isNumber && !slices.ContainsFunc(dims, func(dim any) bool {
		return reads(dim, name) && !slices.ContainsFunc(class.Entries, func(other []any) bool {
			sibling, _ := other[1].(string)
			if other[0] == "n" || !shown[sibling] || sibling == path || paths.Parent(sibling) != paths.Parent(path) || len(other) < 4 {
				return false
			}
			sizes, _ := other[3].([]any)
			return slices.ContainsFunc(sizes, func(size any) bool { return DeepEqual(size, dim) })
		})
	})
}

// towers reports conditions that are each the presence of an object of the config. Each tower is a
// separate model, so the objects are independent. Only Transformers 5.24's Gemma4Model has two, and
// both towers together equal a build.
func towers(x, y any) bool {
	field := func(condition any) string {
		if parts, ok := condition.([]any); ok && len(parts) == 4 && parts[2] == false && parts[3] == true {
			if null, ok := parts[1].([]any); ok && len(null) == 2 && null[0] == "null" {
				text, _ := null[1].(string)
				return text
			}
		}
		return ""
	}
	return strings.HasSuffix(field(x), "_config") && strings.HasSuffix(field(y), "_config")
}

// showed reports a name, not there by default, that a build had together with another.
func (class *Class) showed(name, other string) bool {
	return slices.ContainsFunc(class.Together, func(pair []string) bool { return pair[0] == name && pair[1] == other })
}

// apart refuses two names; a condition has the field. state is the first, in the form of
// [Class] Together.
func (tree *Tree) apart(class *Class, of *evaluation, condition any, name, other, state string) error {
	of.eval(condition, nil)
	of.err = nil
	return tree.unexplained(of, class, fmt.Sprintf("no build shows %q together with %q", name, other), "together", other, state)
}

// optionalParts are the parts of the names of entries, in their order.
func optionalParts(entries [][]any) (parts map[string]*optionalPart, paths []string) {
	parts = make(map[string]*optionalPart)
	for _, entry := range entries {
		if entry[0] == "n" {
			continue
		}
		pattern, _ := entry[1].(string)
		for path := range prefixes(pattern) {
			if parts[path] == nil {
				parts[path] = &optionalPart{condition: entry[2]}
				paths = append(paths, path)
			}
			part := parts[path]
			part.always = part.always || entry[2] == true && !strings.Contains(pattern, "*")
			part.texts = append(part.texts, fmt.Sprint(entry[2]))
		}
	}
	return parts, paths
}

// optionalPart is a part of names, with the conditions of the entries below it.
type optionalPart struct {
	always    bool
	condition any      // of its first entry
	texts     []string // of all conditions
}

func (part *optionalPart) meets(other *optionalPart) bool {
	return slices.ContainsFunc(part.texts, func(text string) bool { return slices.Contains(other.texts, text) })
}

// built are the name parts of a class's config; without one, of the default config, or of the
// smallest that can be built.
func (tree *Tree) built(class *Class, said map[string]any) map[string]bool {
	shown := make(map[string]bool)
	from := &objects{file: tree.file, in: tree.in}
	object := from.read("", class.Config, said, nil)
	if from.err == nil && said == nil && object.class.Base != nil {
		object = from.read("", class.Config, object.class.Base, nil)
	}
	if from.err != nil {
		return shown
	}
	of := &evaluation{object: object, rules: class.Rules, known: make(map[string]any)}
	for _, entry := range class.numbered(of) {
		pattern, _ := entry[1].(string)
		for _, stars := range tree.numbers(class, of, pattern) {
			if !truth(of.eval(entry[2], stars)) || of.err != nil {
				continue
			}
			for path := range prefixes(pattern) {
				shown[path] = true
			}
			break
		}
		of.err = nil
	}
	return shown
}
