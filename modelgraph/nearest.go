package modelgraph

import (
	"cmp"
	"slices"

	"github.com/agnivade/levenshtein"
)

// Nearest returns at most so many of the names whose edit distance from a word is at
// most within, the nearest first: what a message offers where the word is unknown. Of
// names equally far, the one with the longest beginning in common comes first, then the
// one given first.
func Nearest(word string, names []string, most, within int) []string {
	type candidate struct {
		name             string
		distance, common int
	}
	var all []candidate
	for _, name := range names {
		common := 0
		for common < min(len(word), len(name)) && word[common] == name[common] {
			common++
		}
		if distance := levenshtein.ComputeDistance(word, name); distance <= within {
			all = append(all, candidate{name, distance, common})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(a.distance-b.distance, b.common-a.common)
	})
	var near []string
	for _, one := range all[:min(most, len(all))] {
		near = append(near, one.name)
	}
	return near
}
