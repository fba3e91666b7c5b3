package hf

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// order refuses two optional parts of a module of which no build shows the
// order: neither is there by default, and no condition of the one is a condition
// of the other, so that no build need have had both. present are the entries
// that are there.
func (tree *typeTree) order(class *typeClass, of *evaluation, present [][]any) error {
	parts, paths := optionalParts(present)
	siblings := make(map[string][]string)
	var shown map[string]bool
	for _, path := range paths {
		if parts[path].always {
			continue
		}
		for _, other := range siblings[parent(path)] {
			if parts[path].meets(parts[other]) {
				continue
			}
			if shown == nil {
				shown = tree.byDefault(class)
			}
			if !shown[path] && !shown[other] {
				of.eval(parts[path].condition, nil)
				of.err = nil
				return tree.unexplained(of, class, fmt.Sprintf("no build shows the order of %q and %q", other, path))
			}
		}
		siblings[parent(path)] = append(siblings[parent(path)], path)
	}
	return nil
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

// prefixes are the parts of a name: "a", "a.b", "a.b.c".
func prefixes(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range len(name) + 1 {
			if (i == len(name) || name[i] == '.') && !yield(name[:i]) {
				return
			}
		}
	}
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

// byDefault are the parts of names that the default config of a class has.
func (tree *typeTree) byDefault(class *typeClass) map[string]bool {
	shown := make(map[string]bool)
	from := &objects{file: tree.file, in: tree.in}
	object := from.read("", class.Config, nil, nil)
	if from.err != nil {
		return shown
	}
	of := &evaluation{object: object, rules: class.Rules, known: make(map[string]any)}
	if of.rules == nil {
		of.rules = map[string]any{}
	}
	for _, entry := range class.Entries {
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
