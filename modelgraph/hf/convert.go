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
	// class says it all where the family is filled by tables; else nil.
	class *classNames
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
func (load *loading) module(name string, has func(string) bool) (slot, bool) {
	place := slot{name: name}
	for _, renamed := range load.renames {
		place.name = renamed(place.name)
	}
	if load.class != nil {
		place = load.class.slot(place.name)
	}
	for i := range load.stacks {
		if t, ok := load.stacks[i].match(place.name); ok {
			place = t
			break
		}
	}
	place.name = load.based(place.name, has)
	if has(place.name) {
		return place, true
	}
	if has(name) { // spelled as the module already
		return slot{name: load.based(name, has)}, true
	}
	return place, false
}

// based takes the base model's prefix off a name, or puts it on, where only
// that makes it a name of the module: a checkpoint of the base model fits the
// class with a head, and the other way round.
func (load *loading) based(name string, has func(string) bool) string {
	if load.prefix == "" {
		return name
	}
	if inner, ok := strings.CutPrefix(name, load.prefix+"."); ok && has(inner) {
		return inner
	}
	if outer := load.prefix + "." + name; has(outer) {
		return outer
	}
	return name
}

func (load *loading) ignored(name string) bool {
	for _, re := range load.ignore {
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
		for _, rule := range rules {
			rest = rule(rest)
		}
		return head + rest
	}
}
