package assign

import "slices"

// price values items so that a device of group g can hold no more than most[g]
// of value. Where what is left is worth more than all devices left can hold,
// nothing fits. The sizes themselves are a price; others come from the linear
// program.
type price struct {
	of    []int64 // of an item of each kind
	most  []int64 // of each group
	slack int64   // Σ most of devices left − Σ of items left
	table *knapsack
}

// price adds a price.
func (find *search) price(of, most []int64, table *knapsack) {
	cost := price{of: of, most: most, table: table}
	for group, m := range most {
		cost.slack += int64(find.left[group]) * m
	}
	for kind, count := range find.rem {
		cost.slack -= int64(count) * of[kind]
	}
	find.prices = append(find.prices, cost)
}

// askAgain solves the linear program for what is left at a node that turned
// out to be long. It says whether that ends the node; else the prices help for
// the rest of it.
func (find *search) askAgain(lv *level) bool {
	if find.again == 0 || lv.asked || lv.begin-find.nodes < find.again {
		return false
	}
	lv.asked = true
	left := &itemTable{size: find.it.size, count: slices.Clone(find.rem), weight: find.it.weight[:find.count]}
	of, most, table, refuted, ok := left.dual(find.ctx, find.caps, find.left, find.known)
	if ok && !refuted {
		find.price(of, most, table)
	}
	return refuted
}

// place turns the sets of a search that said yes into the devices of
// it.sorted, given each device's room.
func (find *search) place(caps []int64) []int {
	sets := make([][]taken, len(caps))
	used := make([]bool, len(caps))
	for _, c := range find.chosen {
		device := 0
		for used[device] || caps[device] != find.caps[c.group] {
			device++
		}
		used[device], sets[device] = true, c.items
	}
	return find.it.placed(sets)
}

// placed lays the sets on the devices.
func (it *itemTable) placed(sets [][]taken) []int {
	place := make([]int, len(it.weight))
	next := slices.Clone(it.first)
	for device, items := range sets {
		for _, take := range items {
			for range take.count {
				place[next[take.kind]] = device
				next[take.kind]++
			}
		}
	}
	return place
}
