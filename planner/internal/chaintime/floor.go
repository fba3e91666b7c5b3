package chaintime

import (
	"math"
)

// floor is an update that no map's slowest device is below: all of it shared
// out by speed, or one unit where it takes least.
func (s *search) floor() int64 {
	var rate float64
	var unit int64
	for u := range s.update[0] {
		least := int64(math.MaxInt64)
		for d := range s.update {
			least = min(least, s.update[d][u])
		}
		unit = max(unit, least)
	}
	for d := range s.update {
		var sum int64
		for _, v := range s.update[d] {
			sum += v
		}
		if sum == 0 {
			return unit // such a device takes no time for it
		}
		rate += 1 / float64(sum)
	}
	return max(unit, int64(1/rate)-1)
}

// anywhere is a time that no map at all is below.
func (s *search) anywhere() int64 {
	sum := s.lowest
	for u := range s.unit[0] {
		least := int64(math.MaxInt64)
		for d := range s.unit {
			least = min(least, s.unit[d][u])
		}
		sum += least
	}
	return sum
}
