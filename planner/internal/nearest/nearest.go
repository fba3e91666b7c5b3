// Package nearest finds the name that was meant.
package nearest

import "github.com/agnivade/levenshtein"

// Name is the one closest to a path: the least edit distance, then the
// longest beginning in common, then the first.
func Name(path string, names []string) string {
	best, common, at := len(path)+1, 0, ""
	for _, n := range names {
		if abs(len(n)-len(path)) > best {
			continue
		}
		d := levenshtein.ComputeDistance(path, n)
		if c := prefix(path, n); d < best || d == best && c > common {
			best, common, at = d, c, n
		}
	}
	return at
}

// prefix is the length of the common beginning.
func prefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func abs(n int) int { return max(n, -n) }
