package chain

import (
	"fmt"
	"math"
	"math/bits"
)

// Share is the exact fraction Peak/Budget. Budget is positive.
type Share struct {
	Peak, Budget int64
}

// Cmp compares s and t exactly: -1, 0 or +1.
func (s Share) Cmp(t Share) int {
	hi1, lo1 := bits.Mul64(uint64(s.Peak), uint64(t.Budget))
	hi2, lo2 := bits.Mul64(uint64(t.Peak), uint64(s.Budget))
	switch {
	case hi1 < hi2 || hi1 == hi2 && lo1 < lo2:
		return -1
	case hi1 == hi2 && lo1 == lo2:
		return 0
	}
	return +1
}

// Float returns the share as a number.
func (s Share) Float() float64 { return float64(s.Peak) / float64(s.Budget) }

func (s Share) String() string { return fmt.Sprintf("%d/%d", s.Peak, s.Budget) }

func (s Share) less(t Share) bool { return s.Cmp(t) < 0 }

func maxShare(s, t Share) Share {
	if s.less(t) {
		return t
	}
	return s
}

// within returns the largest peak whose share of budget is at most s, cut off
// at the largest int64.
func (s Share) within(budget int64) int64 {
	quo, _ := s.times(budget)
	return quo
}

// below returns the largest peak whose share of budget is less than s, -1 if
// there is none.
func (s Share) below(budget int64) int64 {
	quo, rem := s.times(budget)
	if rem == 0 {
		quo--
	}
	return quo
}

// times divides Peak*budget by Budget. A quotient past int64 comes back as
// the largest int64 with a remainder: every peak lies below it.
func (s Share) times(budget int64) (quo int64, rem uint64) {
	hi, lo := bits.Mul64(uint64(s.Peak), uint64(budget))
	if hi >= uint64(s.Budget) {
		return math.MaxInt64, 1
	}
	q, r := bits.Div64(hi, lo, uint64(s.Budget))
	if q > math.MaxInt64 {
		return math.MaxInt64, 1
	}
	return int64(q), r
}
