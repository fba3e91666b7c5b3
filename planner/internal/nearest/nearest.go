// Package nearest finds the name that was meant.
package nearest

import "github.com/agnivade/levenshtein"

// Name is the one closest to a path: the least edit distance, then the
// longest beginning in common, then the first.
func Name(path string, names []string) string {
	best, common, at := len(path)+1, 0, ""
	for _, name := range names {
		if abs(len(name)-len(path)) > best {
			continue
		}
		device := levenshtein.ComputeDistance(path, name)
		if c := prefix(path, name); device < best || device == best && c > common {
			best, common, at = device, c, name
		}
	}
	return at
}

// prefix is the length of the common beginning.
func prefix(a, b string) int {
	total := 0
	for total < min(len(a), len(b)) && a[total] == b[total] {
		total++
	}
	return total
}

func abs(number int) int { return max(number, -number) }
