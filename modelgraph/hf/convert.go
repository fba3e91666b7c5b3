package hf

import (
	"regexp"
	"slices"
	"strings"
)

// loading has Transformers 5.17's rules from a checkpoint's tensor names to one class's module
// names (core_model_loading.py: rename_source_key).
type loading struct {
	prefix     string       // base_model_prefix
	renames    []rename     // all apply, in order
	converters []*transform // the first that matches applies, after them
	// ignore are names that the framework leaves out without a warning.
	ignore []*regexp.Regexp
	unread []string // results of rules that are not supported here
}

// rename gives the new name, or the same one if the rule does not match.
type rename func(name string) string

// slot is the place of a checkpoint tensor in the module tree.
type slot struct {
	name string // of the parameter or buffer
	// by is the conversion that makes the tensor, or nil. The tensor then is a member of the list
	// of source number source.
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

// memberNumber reads the number of an expert. A number that is too large or not a number becomes
// maxDim, so that the shape is invalid.
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

// based removes the base model's prefix from a name, or adds it, if only that makes it a name of
// the module. So a base model's checkpoint fits a class with a head, and the reverse. As in the
// framework, any character after the prefix counts as the dot.
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
	return slices.ContainsFunc(load.ignore, func(re *regexp.Regexp) bool { return re.MatchString(name) })
}
