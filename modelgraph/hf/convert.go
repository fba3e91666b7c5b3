package hf

import (
	"regexp"
	"strings"
)

// loading says how Transformers 5.17 turns the tensor names of a checkpoint
// into module names for one class (core_model_loading.py: rename_source_key).
type loading struct {
	prefix  string   // base_model_prefix
	renames []rename // all apply, in order
	stacks  []stack  // the first that matches applies
	// ignore are names that the framework leaves out without a warning.
	ignore []*regexp.Regexp
}

// rename gives the new name, or the same one where the rule does not match.
// Rules are functions, not expressions: 100,000 names pass through them.
type rename func(name string) string

// slot is the place of a checkpoint tensor in the module tree.
type slot struct {
	name string // of the parameter or buffer
	// stacked: the tensor is source number source of expert number expert.
	stacked        bool
	expert, source int
}

// module finds the place of a checkpoint tensor among the names that the
// module has. Where there is none, the slot has the name after all rules.
func (l *loading) module(name string, has func(string) bool) (slot, bool) {
	s := slot{name: name}
	for _, r := range l.renames {
		s.name = r(s.name)
	}
	for i := range l.stacks {
		if t, ok := l.stacks[i].match(s.name); ok {
			s = t
			break
		}
	}
	s.name = l.based(s.name, has)
	if has(s.name) {
		return s, true
	}
	if has(name) { // spelled as the module already
		return slot{name: l.based(name, has)}, true
	}
	return s, false
}

// based takes the base model's prefix off a name, or puts it on, where only
// that makes it a name of the module: a checkpoint of the base model fits the
// class with a head, and the other way round.
func (l *loading) based(name string, has func(string) bool) string {
	if l.prefix == "" {
		return name
	}
	if inner, ok := strings.CutPrefix(name, l.prefix+"."); ok && has(inner) {
		return inner
	}
	if outer := l.prefix + "." + name; has(outer) {
		return outer
	}
	return name
}

func (l *loading) ignored(name string) bool {
	for _, re := range l.ignore {
		if re.MatchString(name) {
			return true
		}
	}
	return false
}

// within replaces the first old in a name (WeightRenaming).
func within(old, to string) rename {
	return func(name string) string { return strings.Replace(name, old, to, 1) }
}

// atStart replaces old at the start of a name.
func atStart(old, to string) rename {
	return func(name string) string {
		if rest, ok := strings.CutPrefix(name, old); ok {
			return to + rest
		}
		return name
	}
}

// atEnd replaces old at the end of a name.
func atEnd(old, to string) rename {
	return func(name string) string {
		if rest, ok := strings.CutSuffix(name, old); ok {
			return rest + to
		}
		return name
	}
}

// scoped applies rules to what follows the path of a sub-model, with or
// without the prefix of the base model (WeightTransform._scoped_match).
func scoped(prefix, path string, rules ...rename) rename {
	inner := path
	if inner != "" {
		inner += "."
	}
	outer := prefix + "." + inner
	return func(name string) string {
		head := outer
		if !strings.HasPrefix(name, head) {
			head = inner
		}
		rest, ok := strings.CutPrefix(name, head)
		if !ok {
			return name
		}
		for _, r := range rules {
			rest = r(rest)
		}
		return head + rest
	}
}
