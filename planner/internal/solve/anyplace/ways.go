package anyplace

import "slices"

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
	// level: the power does not rise.
	level bool
}

type how int

const (
	byCooling how = iota
	byKicks
	byScatter
	byRegions
)

// ways are taken in turn, again and again.
type ways struct {
	list  []way
	taken int // without a better answer
}

// lowest and low are powers in the beginning, high is that in the end where devices are
// many: with few it is less.
const lowest, low, high = 2, 3, 5

// cools are ways that cool from the best answer; those beside each other are unlike.
func cools() []way {
	return []way{
		{byCooling, high, 0.004, false},
		{byCooling, low, 0.06, false},
		{byCooling, lowest, 0.015, false},
		{byCooling, low, 0.2, false},
		{byCooling, lowest, 0.004, false},
		{byCooling, high, 0.015, false},
		{byCooling, low, 0.015, false},
		{byCooling, lowest, 0.06, false},
		{byCooling, lowest, 0.75, true},
		{byCooling, low, 0.004, false},
		{byCooling, high, 0.06, false},
		{byCooling, lowest, 0.001, false},
		{byCooling, low, 1, false},
	}
}

// allWays have kicks, regions and random starts between.
func allWays() (list []way) {
	between := []how{byKicks, byScatter, byRegions}
	for i, cool := range cools() {
		list = append(list, cool, way{how: between[i%3]})
	}
	return list
}

// next is the way to take.
func (ways *ways) next() way { return ways.list[ways.taken%len(ways.list)] }

// turn begins half way, for a second goroutine.
func (ways *ways) turn() {
	half := len(ways.list) / 2
	ways.list = slices.Concat(ways.list[half:], ways.list[:half])
}

// told goes on to the next: not from one that found something better.
func (ways *ways) told(better bool) {
	if !better {
		ways.taken++
	}
}

// longer is how many times as long a way is as it was in the beginning: each time
// that all were taken, twice, up to eight times.
func (ways *ways) longer() int { return 1 << min(ways.taken/len(ways.list), 3) }
