package kernel

// pairs are ids, and the index of the token of each.
type pairs struct{ ids, tokens []int32 }

func pairsOf(matrix *Matrix, count int64) pairs {
	return pairs{stretch[int32](matrix, 0, 0, int(count)), stretch[int32](matrix, 1, 0, int(count))}
}

// sortIDs sorts a micro-batch's ids and keeps the order of equal ids. It merges runs of 1, 2, 4, …
// between order and work, which is as large.
func sortIDs(call *Call) error {
	matrices, err := call.need("ids", "order", "work")
	if err != nil {
		return err
	}
	ids, order := matrices[0], matrices[1]
	count := ids.Rows * ids.Columns
	sorted, other := pairsOf(matrices[2], count), pairsOf(order, count)
	for i := range count {
		sorted.ids[i], sorted.tokens[i] = ids.Int(i/ids.Columns, i%ids.Columns), int32(i)
	}
	for run := int64(1); run < count; run *= 2 {
		for first := int64(0); first < count; first += 2 * run {
			merge(other, sorted, first, min(first+run, count), min(first+2*run, count))
		}
		sorted, other = other, sorted
	}
	result := pairsOf(order, count)
	copy(result.ids, sorted.ids)
	copy(result.tokens, sorted.tokens)
	return nil
}

// merge merges the runs [first, middle) and [middle, end).
func merge(into, from pairs, first, middle, end int64) {
	left, right := first, middle
	for at := first; at < end; at++ {
		next := &left
		if left == middle || right < end && from.ids[right] < from.ids[left] {
			next = &right
		}
		into.ids[at], into.tokens[at] = from.ids[*next], from.tokens[*next]
		*next++
	}
}
