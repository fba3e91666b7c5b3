package modelgraph

import (
	"cmp"
	"slices"

	"github.com/agnivade/levenshtein"
)

// Nearest returns up to most of the names whose edit distance from a word is at most within, the
// nearest first. Messages suggest them for an unknown word. Equally distant names are ordered by
// the length of the beginning that they share with the word, then as given.
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
