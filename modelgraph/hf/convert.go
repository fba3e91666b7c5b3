package hf

import (
	"regexp"
	"strings"
)

// loading says how Transformers 5.17 turns the tensor names of a checkpoint into module names for
// one class (core_model_loading.py: rename_source_key).
type loading struct {
	prefix     string       // base_model_prefix
	renames    []rename     // all apply, in order
	converters []*transform // the first that matches applies, after them
	// ignore are names that the framework leaves out without a warning.
	ignore []*regexp.Regexp
	unread []string // what rules that are not known here make
}

// rename gives the new name, or the same one if the rule does not match.
type rename func(name string) string

// slot is the place of a checkpoint tensor in the module tree.
type slot struct {
	name string // of the parameter or buffer
	// by is the conversion that makes it, nil for none: the tensor is one of a list of those that
	// its source number source names, or the list's member.
	by     *transform
	source int
	member int
}

// module finds the place of a checkpoint tensor among the names that the module has. If there is
// none, the slot has the name after all rules.
func (load *loading) module(name string, has func(string) bool) (slot, bool) {
	place := slot{name: name}
	for _, renamed := range load.renames {
		place.name = renamed(place.name)
	}
	for _, rule := range load.converters {
		if found, ok := rule.match(place.name); ok {
			place = slot{name: found.name, by: rule, source: found.source, member: memberNumber(found.member)}
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

// targets are the tensors of the place: a conversion may make several of one.
func (place *slot) targets() []string {
	if place.by == nil || len(place.by.to) == 1 {
		return []string{place.name}
	}
	names := make([]string, len(place.by.to))
	for i, to := range place.by.to {
		names[i] = strings.Replace(place.name, place.by.to[0], to, 1)
	}
	return names
}

// memberNumber reads the number of an expert; one that no model has replaces all that are too large
// or not a number, so that its shape is odd.
func memberNumber(text string) int {
	number := 0
	for _, digit := range text {
		if digit < '0' || digit > '9' {
			return maxDim
		}
		if number = 10*number + int(digit-'0'); number > maxDim {
			return maxDim
		}
	}
	return number
}

// based takes the base model's prefix off a name, or puts it on, where only that makes it a name of
// the module: a checkpoint of the base model fits the class with a head, and the other way round.
// Whatever follows the prefix counts as the dot, as in the framework.
func (load *loading) based(name string, has func(string) bool) string {
	if inner, ok := strings.CutPrefix(name, load.prefix); ok && inner != "" && has(inner[1:]) {
		return inner[1:]
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
