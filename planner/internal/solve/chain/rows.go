package chain

// pass is one step of the dynamic program: columns are the cuts before the device, rows the cuts
// after it. An entry is the sum before the device plus the square of its share. It is absent if the
// run does not fit or is reversed.
type pass struct {
	*squares
	device, take int
	from, to     span
}

// scan fills the rows [lo, hi] column by column from the right. The peak and the loss against the
// best possible sum both grow to the left, so most rows end early. Sums never fall along from: a
// map up to a later cut becomes one up to an earlier cut if its runs shrink.
func (p *pass) scan(lo, hi int) {
	for b := lo; b <= hi && !p.quit; b++ {
		if p.Additive || p.rough {
			p.divide(b, hi, p.from.lo, p.from.hi())
			return
		}
		p.row(b, p.from.lo, p.from.hi())
		p.poll()
	}
}

// divide fills the rows [lo, hi], given that the columns [left, right] contain the best of each.
// The middle row's best column splits the rest in two, so each column is looked at O(log) times.
//
// That is exact if squares of shares satisfy this quadrangle inequality for a < a', b < b':
//
//	w(a,b) + w(a',b') <= w(a,b') + w(a',b)
//
// A convex function of an additive peak satisfies it. Absent entries, taken as infinite, keep it.
// If [a,b) or [a',b') does not fit, neither does [a,b'), which contains both. If either is
// reversed, so is [a',b). So the last best column of a row is never left of that of the row above,
// among rows with any entry; step leaves out the others. Each row finds an entry in its columns.
// They start at or before the row's own cut, and end at or after the first that fits, by the choice
// of the neighbours.
func (p *pass) divide(lo, hi, left, right int) {
	for lo <= hi && !p.quit {
		mid := int(uint(lo+hi) / 2)
		best := p.row(mid, left, right)
		p.poll()
		p.divide(lo, mid-1, left, best)
		lo, left = mid+1, best
	}
}

// row fills row b from the columns [left, right] and returns the last best column.
func (p *pass) row(b, left, right int) (best int) {
	least := uint64(unreached)
	floor := p.from.sums[left-p.from.lo]
	a := min(right, b)
	best = a
	for ; a >= left; a-- {
		peak := p.Peak(p.device, a, b, p.base[p.device]|p.groups[p.take])
		p.cells++
		if peak > p.caps[p.device] {
			break
		}
		square := p.square(p.device, peak)
		if sum := p.from.sums[a-p.from.lo] + square; sum < least {
			least, best = sum, a
		}
		if floor+square >= least {
			break
		}
	}
	if sum := &p.to.sums[b-p.to.lo]; least < *sum {
		*sum = least
	}
	return best
}
