package graph

// InOrder puts items in an order in which each stands behind all that are before it:
// before and after are their direct neighbours (Kahn, CACM 5, 1962). What is on a cycle,
// or behind one, is left out.
func InOrder(before, after [][]int) []int {
	waits := make([]int, len(before))
	order := make([]int, 0, len(before))
	for item := range before {
		if waits[item] = len(before[item]); waits[item] == 0 {
			order = append(order, item)
		}
	}
	for i := 0; i < len(order); i++ {
		for _, next := range after[order[i]] {
			waits[next]--
			if waits[next] == 0 {
				order = append(order, next)
			}
		}
	}
	return order
}

// Cones are, for each item of an order, the item and all that it comes after, as bits;
// before are its direct neighbours, which stand before it.
func Cones(order []int, before [][]int) [][]uint64 {
	cones := make([][]uint64, len(before))
	for _, item := range order {
		cone := make([]uint64, (len(before)+63)/64)
		cone[item/64] |= 1 << (item % 64)
		for _, other := range before[item] {
			for word, members := range cones[other] {
				cone[word] |= members
			}
		}
		cones[item] = cone
	}
	return cones
}
