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
func (s *search) price(of, most []int64, table *knapsack) {
	p := price{of: of, most: most, table: table}
	for g, m := range most {
		p.slack += int64(s.left[g]) * m
	}
	for t, n := range s.rem {
		p.slack -= int64(n) * of[t]
	}
	s.prices = append(s.prices, p)
}

// askAgain solves the linear program for what is left at a node that turned
// out to be long. It says whether that ends the node; else the prices help for
// the rest of it.
func (s *search) askAgain(lv *level) bool {
	if s.again == 0 || lv.asked || lv.begin-s.nodes < s.again {
		return false
	}
	lv.asked = true
	left := &items{size: s.it.size, count: slices.Clone(s.rem), weight: s.it.weight[:s.count]}
	of, most, table, refuted, ok := left.dual(s.ctx, s.caps, s.left, s.known)
	if ok && !refuted {
		s.price(of, most, table)
	}
	return refuted
}

// place turns the sets of a search that said yes into the devices of
// it.sorted, given each device's room.
func (s *search) place(caps []int64) []int {
	place := make([]int, len(s.it.weight))
	used := make([]bool, len(caps))
	next := slices.Clone(s.it.first)
	for _, c := range s.chosen {
		d := 0
		for used[d] || caps[d] != s.caps[c.group] {
			d++
		}
		used[d] = true
		for _, t := range c.items {
			for range t.n {
				place[next[t.kind]] = d
				next[t.kind]++
			}
		}
	}
	return place
}
