package assign

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
	knapsackItems = 1000 // of at most unitPrice each: sums stay below 2^31
)

// newKnapsack makes a table for items under a room, or nil where it would be
// large.
func newKnapsack(it *items, room int64) *knapsack {
	k := &knapsack{quantum: 1}
	if room > exactSums {
		k.quantum = (room + exactSums - 1) / exactSums
	}
	k.columns = int(room/k.quantum) + 1
	if len(it.weight) > knapsackItems || (len(it.size)+1)*k.columns > knapsackCells || len(it.weight)*k.columns > knapsackWork {
		return nil
	}
	k.value = make([]int32, (len(it.size)+1)*k.columns)
	return k
}

func (k *knapsack) row(t int) []int32 { return k.value[t*k.columns : (t+1)*k.columns] }

func (k *knapsack) best(t int, room int64) int64 {
	return int64(k.value[t*k.columns+int(room/k.quantum)])
}

// fill fills the table for these values of an item of each kind.
func (k *knapsack) fill(it *items, of []int64) {
	for t := len(it.size) - 1; t >= 0; t-- {
		row := k.row(t)
		copy(row, k.row(t+1))
		size, value := int(it.size[t]/k.quantum), int32(of[t])
		if value <= 0 || size >= len(row) {
			continue
		}
		for range min(it.count[t], len(row)/max(size, 1)) {
			for r := len(row) - 1; r >= size; r-- {
				row[r] = max(row[r], row[r-size]+value)
			}
		}
	}
}

// set is a most valuable set for a room, as a number of each kind.
func (k *knapsack) set(it *items, of []int64, room int64) []taken {
	var items []taken
	r := int(room / k.quantum)
	for t := range it.size {
		size, n := int(it.size[t]/k.quantum), 0
		for of[t] > 0 && int64(k.row(t)[r]) != int64(k.row(t + 1)[r-n*size])+int64(n)*of[t] {
			n++
		}
		r -= n * size
		if n > 0 {
			items = append(items, taken{t, n})
		}
	}
	return items
}
