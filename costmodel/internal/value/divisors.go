package value

import (
	"fmt"
	"math"
	"slices"
)

// Divisors returns the divisors of a number, ascending, in O(√n).
func Divisors(whole int64) []int64 {
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

// NearestDivisors names the divisors of whole next to to, below and above, for which works is true,
// or all if works is nil: "4 and 6 do", "4 does"; empty if none does.
func NearestDivisors(to, whole int64, works func(int64) bool) string {
	below, above := int64(0), int64(math.MaxInt64)
	for _, number := range Divisors(whole) {
		if works == nil || works(number) {
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
