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

// Cmp compares share and other exactly: -1, 0 or +1.
func (share Share) Cmp(other Share) int {
	hi1, lo1 := bits.Mul64(uint64(share.Peak), uint64(other.Budget))
	hi2, lo2 := bits.Mul64(uint64(other.Peak), uint64(share.Budget))
	switch {
	case hi1 < hi2 || hi1 == hi2 && lo1 < lo2:
		return -1
	case hi1 == hi2 && lo1 == lo2:
		return 0
	}
	return +1
}

// Float returns the share as a number.
func (share Share) Float() float64 { return float64(share.Peak) / float64(share.Budget) }

func (share Share) String() string { return fmt.Sprintf("%d/%d", share.Peak, share.Budget) }

func (share Share) less(other Share) bool { return share.Cmp(other) < 0 }

// MaxShare returns the larger of two shares.
func MaxShare(share, other Share) Share {
	if share.less(other) {
		return other
	}
	return share
}

// within returns the largest peak whose share of the budget is at most this one, limited to the
// largest int64.
func (share Share) within(budget int64) int64 {
	quo, _ := share.times(budget)
	return quo
}

// Below returns the largest peak whose share of the budget is less, -1 if there is none.
func (share Share) Below(budget int64) int64 {
	quo, rem := share.times(budget)
	if rem == 0 {
		quo--
	}
	return quo
}

// times divides Peak*budget by Budget. If the quotient exceeds int64, it returns the largest int64
// with a remainder: every peak is below it.
func (share Share) times(budget int64) (quo int64, rem uint64) {
	hi, lo := bits.Mul64(uint64(share.Peak), uint64(budget))
	if hi >= uint64(share.Budget) {
		return math.MaxInt64, 1
	}
	q, r := bits.Div64(hi, lo, uint64(share.Budget))
	if q > math.MaxInt64 {
		return math.MaxInt64, 1
	}
	return int64(q), r
}
