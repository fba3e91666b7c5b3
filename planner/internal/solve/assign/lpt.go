package assign

import "math/big"

// lpt places each item, largest first, where the share it leads to is least
// (Graham, SIAM Journal on Applied Mathematics 17, 1969).
func (it *itemTable) lpt() []int {
	place := make([]int, len(it.weight))
	loads := it.loads(nil)
	for pos, weight := range it.weight {
		best, least := 0, 0.0
		for device, load := range loads {
			share := float64(load+weight*it.unit) / float64(it.problem.Budgets[device])
			if device == 0 || share < least {
				best, least = device, share
			}
		}
		place[pos] = best
		loads[best] += weight * it.unit
	}
	return place
}

// multifit bisects for the least limit under which first fit, largest item
// first, finds room (Coffman, Garey and Johnson, SIAM Journal on Computing 7,
// 1978). It returns nil where it finds nothing below high.
func (it *itemTable) multifit(low, high *big.Rat) []int {
	var best []int
	for range 12 {
		middle := new(big.Rat).Add(low, high)
		middle.Mul(middle, big.NewRat(1, 2))
		place := it.firstFit(it.room(middle, false))
		if place == nil {
			low = middle
			continue
		}
		best, high = place, it.value(place)
	}
	return best
}

// firstFit packs into the devices in rising order of room, so that large
// devices stay free for what fits nowhere else.
func (it *itemTable) firstFit(caps []int64) []int {
	order := rising(caps)
	place := make([]int, len(it.weight))
	for pos, weight := range it.weight {
		found := false
		for _, device := range order {
			if caps[device] >= weight {
				place[pos], found = device, true
				caps[device] -= weight
				break
			}
		}
		if !found {
			return nil
		}
	}
	return place
}
