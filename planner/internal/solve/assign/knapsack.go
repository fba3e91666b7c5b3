package assign

import "math/bits"

// knapsack tells what the most valuable items of kind t and later are worth
// that fit in a room. Sizes are rounded down to whole quanta, so that what it
// tells is never too little.
type knapsack struct {
	quantum int64
	columns int
	value   []int32 // kind t's row is value[t*columns:][:columns]
}

// knapsackCells bounds a table, and knapsackWork what filling one takes.
const (
	knapsackCells = 8 << 20
	knapsackWork  = 32 << 20
	knapsackItems = 1000 // on a device, of at most unitPrice each: sums stay below 2^31
)

// newKnapsack makes a table for items under a room, or nil where it would be
// large.
func newKnapsack(it *itemTable, room int64) *knapsack {
	sack := &knapsack{quantum: 1}
	if room > exactSums {
		sack.quantum = (room + exactSums - 1) / exactSums
	}
	sack.columns = int(room/sack.quantum) + 1
	items, steps := 0, 0 // that fit on a device, and to fill the table
	for kind, size := range it.size {
		fit := min(int64(it.count[kind]), room/size)
		items, steps = items+int(fit), steps+bits.Len64(uint64(fit))
	}
	fewest := min(int64(items), room/it.size[len(it.size)-1])
	if fewest > knapsackItems || (len(it.size)+1)*sack.columns > knapsackCells || steps*sack.columns > knapsackWork {
		return nil
	}
	sack.value = make([]int32, (len(it.size)+1)*sack.columns)
	return sack
}

func (sack *knapsack) row(kind int) []int32 {
	return sack.value[kind*sack.columns : (kind+1)*sack.columns]
}

func (sack *knapsack) best(kind int, room int64) int64 {
	return int64(sack.value[kind*sack.columns+int(room/sack.quantum)])
}

// fill fills the table for these values of an item of each kind.
func (sack *knapsack) fill(it *itemTable, of []int64) {
	for kind := len(it.size) - 1; kind >= 0; kind-- {
		row := sack.row(kind)
		copy(row, sack.row(kind+1))
		size, value := int(it.size[kind]/sack.quantum), int32(of[kind])
		if value <= 0 || size >= len(row) {
			continue
		}
		// So many copies by 1, 2, 4, … and the rest.
		most := it.count[kind]
		if size > 0 {
			most = min(most, (len(row)-1)/size)
		}
		for number, step := most, 1; number > 0; number, step = number-step, 2*step {
			step = min(step, number)
			by, worth := step*size, int32(step)*value
			for r := len(row) - 1; r >= by; r-- {
				row[r] = max(row[r], row[r-by]+worth)
			}
		}
	}
}

// set is a most valuable set for a room, as a number of each kind.
func (sack *knapsack) set(it *itemTable, of []int64, room int64) []taken {
	var items []taken
	row := int(room / sack.quantum)
	for kind := range it.size {
		size, total := int(it.size[kind]/sack.quantum), 0
		for of[kind] > 0 && int64(sack.row(kind)[row]) != int64(sack.row(kind + 1)[row-total*size])+int64(total)*of[kind] {
			total++
		}
		row -= total * size
		if total > 0 {
			items = append(items, taken{kind, total})
		}
	}
	return items
}
