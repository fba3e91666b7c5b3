package anyplace

// way is a way to search on from the best answer. Which of them suits a problem is not
// known before, and few do: where transfers are dear a low power of the loads, that
// rises, and much heat; where many items are to be balanced a high power and next to
// none.
type way struct {
	how
	// power is how often a scaled load is squared in the beginning.
	power int
	// hot is the temperature in the beginning, as a part of the load.
	hot float64
}

type how int

const (
	byCooling how = iota
	byKicks
	byScatter
)

// ways are taken in turn, again and again.
type ways struct {
	list  []way
	taken int // without a better answer
}

// low and high are the powers in the beginning; a low one rises to the high one.
const low, high = 3, 5

// cools are ways that cool from the best answer; those beside each other are unlike.
func cools() []way {
	return []way{
		{byCooling, high, 0.004},
		{byCooling, low, 0.06},
		{byCooling, high, 0.015},
		{byCooling, low, 0.004},
		{byCooling, high, 0.06},
		{byCooling, low, 0.2},
		{byCooling, high, 0.001},
		{byCooling, low, 0.015},
		{byCooling, high, 0.2},
		{byCooling, low, 0.001},
	}
}

// allWays have kicks and random starts between.
func allWays() (list []way) {
	for i, cool := range cools() {
		list = append(list, cool)
		switch i % 3 {
		case 0:
			list = append(list, way{how: byKicks})
		case 2:
			list = append(list, way{how: byScatter})
		default:
		}
	}
	return list
}

// next is the way to take.
func (ways *ways) next() way { return ways.list[ways.taken%len(ways.list)] }

// told goes on to the next: not from one that found something better.
func (ways *ways) told(better bool) {
	if !better {
		ways.taken++
	}
}

// longer is how many times as long a way is as it was in the beginning: each time
// that all were taken, twice, up to eight times.
func (ways *ways) longer() int { return 1 << min(ways.taken/len(ways.list), 3) }
