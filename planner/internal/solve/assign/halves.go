package assign

// halves is the bound L2 of Martello and Toth for packing into bins of one
// capacity (Discrete Applied Mathematics 28, 1990): items above half of it need
// a bin each, and with those of at least some size, for every size, only what
// they leave is room for the rest.
func (it *itemTable) halves(capacity int64, bins int) bool {
	for kind := len(it.size) - 1; kind >= 0; kind-- {
		least := it.size[kind]
		if 2*least > capacity {
			return false
		}
		need, left, small := 0, int64(0), int64(0)
		for larger := range kind + 1 {
			count, size := it.count[larger], it.size[larger]
			switch {
			case size > capacity-least:
				need += count
			case 2*size > capacity:
				need, left = need+count, left+int64(count)*(capacity-size)
			default:
				small += int64(count) * size
			}
		}
		if need > bins || small > left+int64(bins-need)*capacity {
			return true
		}
	}
	return false
}
