package assign

// halves is the bound L2 of Martello and Toth for packing into bins of room c
// (Discrete Applied Mathematics 28, 1990): items above c/2 need a bin each, and
// with those of at least a, only what they leave is room for the rest.
func (it *items) halves(c int64, bins int) bool {
	for t := len(it.size) - 1; t >= 0; t-- {
		a := it.size[t]
		if 2*a > c {
			return false
		}
		need, left, small := 0, int64(0), int64(0)
		for u := range t + 1 {
			n, s := it.count[u], it.size[u]
			switch {
			case s > c-a:
				need += n
			case 2*s > c:
				need, left = need+n, left+int64(n)*(c-s)
			default:
				small += int64(n) * s
			}
		}
		if need > bins || small > left+int64(bins-need)*c {
			return true
		}
	}
	return false
}
