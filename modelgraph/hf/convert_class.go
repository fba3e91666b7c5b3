package hf

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// classNames are a class's rules for stored names, as the table of classes has
// them.
type classNames struct {
	renames map[string]string
	sources map[string]int // which of those that become one parameter, side by side
	buffers map[string]bool
}

func namesOfClass(class *listedClass) *classNames {
	names := &classNames{renames: class.Renames, sources: make(map[string]int), buffers: class.Buffers}
	seen := make(map[string]int)
	// gate before up and w1 before w3: their order is that of their names.
	for _, stored := range slices.Sorted(maps.Keys(class.Renames)) {
		to := class.Renames[stored]
		names.sources[stored] = seen[to]
		seen[to]++
	}
	return names
}

// slot is where a stored name goes: an expert's own tensor has a number more
// than the parameter in which all experts' are stacked.
func (names *classNames) slot(name string) slot {
	pattern := starred(name)
	to, ok := names.renames[pattern]
	if !ok {
		return slot{name: name}
	}
	numbered := numbers(name)
	place := slot{name: filled(to, numbered)}
	if len(numbered) > strings.Count(to, "*") {
		place.stacked, place.expert, place.source = true, smallNumber(numbered[len(numbered)-1]), names.sources[pattern]
	}
	return place
}

// smallNumber reads the number of an expert; one that no model has stands for
// all that are too large, so that its shape is odd.
func smallNumber(text string) int {
	number := 0
	for _, digit := range text {
		if number = 10*number + int(digit-'0'); number > maxDim {
			return maxDim
		}
	}
	return number
}

// tableLoading are the rules of a family that is filled by tables.
func tableLoading(modelType, class string) *loading {
	listed, ok, err := findClass(class, modelType)
	if err != nil || !ok {
		return nil
	}
	load := &loading{prefix: listed.Prefix, renames: legacy, class: namesOfClass(listed)}
	for _, expr := range listed.Ignored {
		if re, err := regexp.Compile(expr); err == nil {
			load.ignore = append(load.ignore, re)
		}
	}
	return load
}
