package assign

import (
	"math/bits"
	"slices"
)

// exactSums is the largest room for which subset sums are kept one by one;
// above it they are kept in steps of quantum units, and prune less.
const exactSums = int64(1) << 17

// sumBits bounds the bits of a table, 4 MB.
const sumBits = int64(1) << 25

// reach holds, for each kind of item, the sums that items of it and of later
// kinds can have, one bit a sum.
type reach struct {
	quantum int64
	words   int
	rows    []uint64 // kind t's row is rows[t*words:][:words]
	slack   []int64  // how far a sum in quanta can be above the sum of quanta
}

// build takes sums up to most.
func (reachable *reach) build(size []int64, count []int, most int64) {
	kinds := len(size)
	keep := min(exactSums, sumBits/int64(kinds+1))
	reachable.quantum = max(1, (most+keep-1)/keep)
	reachable.words = int(most/reachable.quantum)/64 + 1
	reachable.rows = slices.Grow(reachable.rows[:0], (kinds+1)*reachable.words)[:(kinds+1)*reachable.words]
	reachable.slack = slices.Grow(reachable.slack[:0], kinds+1)[:kinds+1]
	last := reachable.row(kinds)
	clear(last)
	last[0] = 1
	reachable.slack[kinds] = 0
	for kind := kinds - 1; kind >= 0; kind-- {
		row := reachable.row(kind)
		copy(row, reachable.row(kind+1))
		reachable.slack[kind] = reachable.slack[kind+1]
		if reachable.quantum > 1 {
			reachable.slack[kind] += int64(count[kind])
		}
		// So many copies by 1, 2, 4, … and the rest.
		for number, step := count[kind], 1; number > 0; number, step = number-step, 2*step {
			step = min(step, number)
			shiftOr(row, size[kind]/reachable.quantum*int64(step))
		}
	}
}

func (reachable *reach) row(kind int) []uint64 {
	return reachable.rows[kind*reachable.words : (kind+1)*reachable.words]
}

// shiftOr adds to a set of sums those that are by more.
func shiftOr(row []uint64, by int64) {
	if by/64 >= int64(len(row)) {
		return
	}
	words, shift := int(by/64), uint(by%64)
	for i := len(row) - 1; i >= words; i-- {
		x := row[i-words] << shift
		if shift > 0 && i > words {
			x |= row[i-words-1] >> (64 - shift)
		}
		row[i] |= x
	}
}

// any says whether items of kinds from kind on may have a sum from low to high.
func (reachable *reach) any(kind int, low, high int64) bool {
	from := max(low, 0)/reachable.quantum - reachable.slack[kind]
	if from <= 0 {
		return true // the sum 0
	}
	row := reachable.row(kind)
	to := min(high/reachable.quantum, int64(len(row))*64-1)
	if to < from {
		return false
	}
	first, last := int(from/64), int(to/64)
	mask := ^uint64(0) << uint(from%64)
	for i := first; i < last; i++ {
		if row[i]&mask != 0 {
			return true
		}
		mask = ^uint64(0)
	}
	return row[last]&mask&(^uint64(0)>>uint(63-to%64)) != 0
}

// most is the largest sum of all kinds that is at most high; high itself where
// sums are not kept one by one.
func (reachable *reach) most(high int64) int64 {
	if reachable.quantum > 1 || high < 0 {
		return high
	}
	return reachable.highest(high)
}

// highest is the largest sum of all kinds that is at most high, in quanta.
func (reachable *reach) highest(high int64) int64 {
	row := reachable.row(0)
	at := min(high, int64(len(row))*64-1)
	word := row[at/64] & (^uint64(0) >> uint(63-at%64))
	for i := int(at / 64); ; i-- {
		if word != 0 {
			return int64(i*64 + 63 - bits.LeadingZeros64(word))
		}
		word = row[i-1] // bit 0 of row[0] is set
	}
}

// has says whether items of kinds from kind on have a sum, in quanta.
func (reachable *reach) has(kind int, sum int64) bool {
	return reachable.row(kind)[sum/64]>>uint(sum%64)&1 != 0
}
