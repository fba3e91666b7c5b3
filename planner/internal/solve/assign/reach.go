package assign

import "math/bits"

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
func (r *reach) build(size []int64, count []int, most int64) {
	kinds := len(size)
	keep := min(exactSums, sumBits/int64(kinds+1))
	r.quantum = max(1, (most+keep-1)/keep)
	r.words = int(most/r.quantum)/64 + 1
	if need := (kinds + 1) * r.words; cap(r.rows) < need {
		r.rows = make([]uint64, need)
		r.slack = make([]int64, kinds+1)
	} else {
		r.rows = r.rows[:need]
	}
	last := r.row(kinds)
	clear(last)
	last[0] = 1
	r.slack[kinds] = 0
	for t := kinds - 1; t >= 0; t-- {
		row := r.row(t)
		copy(row, r.row(t+1))
		r.slack[t] = r.slack[t+1]
		if r.quantum > 1 {
			r.slack[t] += int64(count[t])
		}
		// n copies by 1, 2, 4, … and the rest.
		for n, step := count[t], 1; n > 0; n, step = n-step, 2*step {
			step = min(step, n)
			shiftOr(row, size[t]/r.quantum*int64(step))
		}
	}
}

func (r *reach) row(t int) []uint64 { return r.rows[t*r.words : (t+1)*r.words] }

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

// any says whether items of kinds from t on may have a sum from low to high.
func (r *reach) any(t int, low, high int64) bool {
	from := max(low, 0)/r.quantum - r.slack[t]
	if from <= 0 {
		return true // the sum 0
	}
	row := r.row(t)
	to := min(high/r.quantum, int64(len(row))*64-1)
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
func (r *reach) most(high int64) int64 {
	if r.quantum > 1 || high < 0 {
		return high
	}
	row := r.row(0)
	at := min(high, int64(len(row))*64-1)
	word := row[at/64] & (^uint64(0) >> uint(63-at%64))
	for i := int(at / 64); ; i-- {
		if word != 0 {
			return int64(i*64 + 63 - bits.LeadingZeros64(word))
		}
		word = row[i-1] // bit 0 of row[0] is set
	}
}
