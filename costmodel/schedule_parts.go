package costmodel

import (
	"fmt"
	"math"
	"slices"
)

// Divisors are those of n, ascending, in O(√n).
func Divisors(count int64) []int64 {
	var low, high []int64
	for d := int64(1); d <= count/d; d++ {
		if count%d == 0 {
			low = append(low, d)
			if count/d != d {
				high = append(high, count/d)
			}
		}
	}
	slices.Reverse(high)
	return append(low, high...)
}

// Nearest names the numbers next to count, below and above, that work: "4 and 6
// do", "4 does"; empty where none does.
func Nearest(count int64, among []int64, works func(int64) bool) string {
	below, above := int64(0), int64(math.MaxInt64)
	for _, value := range among {
		if works(value) {
			if value <= count {
				below = max(below, value)
			} else {
				above = min(above, value)
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
func (schedule Schedule) Parts(batch int64) Message {
	takes := func(value int64) bool {
		schedule.MicroBatches = value
		return schedule.Check() == nil
	}
	if near := Nearest(schedule.MicroBatches, Divisors(batch), takes); near != "" {
		return Messagef("%s", near)
	}
	m := schedule.Stages // one round, which every schedule takes
	return Messagef("%v %v do", Set("batch", (batch+m-1)/m*m), Set("micro_batches", m))
}
