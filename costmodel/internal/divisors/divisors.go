// Package divisors names the parts into which a number can be cut.
package divisors

import (
	"fmt"
	"math"
	"slices"
)

// Of are the divisors of a number, ascending, in O(√n).
func Of(whole int64) []int64 {
	var low, high []int64
	for part := int64(1); part <= whole/part; part++ {
		if whole%part == 0 {
			low = append(low, part)
			if whole/part != part {
				high = append(high, whole/part)
			}
		}
	}
	slices.Reverse(high)
	return append(low, high...)
}

// Nearest names the numbers next to one, below and above, that work: "4 and 6
// do", "4 does"; empty where none does.
func Nearest(to int64, among []int64, works func(int64) bool) string {
	below, above := int64(0), int64(math.MaxInt64)
	for _, number := range among {
		if works(number) {
			if number <= to {
				below = max(below, number)
			} else {
				above = min(above, number)
			}
		}
	}
	switch {
	case below > 0 && above < math.MaxInt64:
		return fmt.Sprintf("%d and %d do", below, above)
	case below > 0:
		return fmt.Sprintf("%d does", below)
	case above < math.MaxInt64:
		return fmt.Sprintf("%d does", above)
	}
	return ""
}
