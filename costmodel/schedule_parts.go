package costmodel

import (
	"fmt"
	"math"
	"slices"
)

// Divisors are those of n, ascending, in O(√n).
func Divisors(n int64) []int64 {
	var low, high []int64
	for d := int64(1); d <= n/d; d++ {
		if n%d == 0 {
			low = append(low, d)
			if n/d != d {
				high = append(high, n/d)
			}
		}
	}
	slices.Reverse(high)
	return append(low, high...)
}

// Nearest names the numbers next to n, below and above, that work: "4 and 6
// do", "4 does"; empty where none does.
func Nearest(n int64, among []int64, works func(int64) bool) string {
	below, above := int64(0), int64(math.MaxInt64)
	for _, m := range among {
		if works(m) {
			if m <= n {
				below = max(below, m)
			} else {
				above = min(above, m)
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

// Parts says which numbers of micro-batches of a batch the schedule takes, the
// nearest to its own; where none is, which batch would do.
func (s Schedule) Parts(batch int64) Message {
	takes := func(m int64) bool {
		s.MicroBatches = m
		return s.Check() == nil
	}
	if near := Nearest(s.MicroBatches, Divisors(batch), takes); near != "" {
		return Messagef("%s", near)
	}
	m := s.Stages // one round, which every schedule takes
	return Messagef("%v %v do", Set("batch", (batch+m-1)/m*m), Set("micro_batches", m))
}
