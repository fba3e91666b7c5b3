package anyplace

import "slices"

// way is a way to search on. Which of them suits a problem is not
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
	byAnew
	byJoins
	byCorridor
)

// ways are taken in turn, again and again.
type ways struct {
	list  []way
	taken int // without a better answer
	// due is when each is to be taken, in such turns, and rest how many turns of all it
	// waits then.
	due, rest []int
}

// lowest and low are powers in the beginning, high is that in the end where devices are
// many: with few it is less.
const lowest, low, high = 2, 3, 5

// steep is the power in regions and corridors: of two devices that are even to a
// thousandth, one busier by as much counts.
const steep = 11

// cools are ways that cool from what there is; those beside each other are unlike.
func cools() []way {
	return []way{
		{byCooling, high, 0.004, false},
		{byCooling, low, 0.06, false},
		{byCooling, lowest, 0.015, false},
		{byCooling, low, 0.2, false},
		{byCooling, high, 0.015, false},
		{byCooling, lowest, 0.75, true},
	}
}

// allWays have what finds the most between: some devices placed anew, and regions; of two
// devices, where nothing is left to be placed anew, all that they hold, once a turn.
func allWays(devices int) (list []way) {
	seldom := []how{byKicks, byScatter}
	for i, cool := range cools() {
		some := []how{byAnew, byRegions, byAnew, byJoins, byAnew, seldom[i%2]}
		if devices < 3 {
			some = []how{byCorridor, byRegions, byJoins, seldom[i%2]}
		}
		for _, how := range some {
			list = append(list, way{how: how})
		}
		list = append(list, cool)
	}
	return list
}

// next is the way to take.
func (ways *ways) next() way { return ways.list[ways.at()] }

// at is the one that waits no longer than others.
func (ways *ways) at() (first int) {
	if ways.due == nil {
		ways.due, ways.rest = make([]int, len(ways.list)), slices.Repeat([]int{1}, len(ways.list))
		for i := range ways.due {
			ways.due[i] = i
		}
	}
	for i, due := range ways.due {
		if due < ways.due[first] {
			first = i
		}
	}
	return first
}

// turn begins half way, for a second goroutine.
func (ways *ways) turn() {
	half := len(ways.list) / 2
	ways.list = slices.Concat(ways.list[half:], ways.list[:half])
}

// mostRest is for how many turns of the others a way waits at most.
const mostRest = 8

// told goes on to the next, but not from one that found something better: one that does
// not waits the longer the more often.
func (ways *ways) told(better bool) {
	at := ways.at()
	if better {
		ways.rest[at] = 1
		return
	}
	ways.taken++
	ways.due[at] += len(ways.list) * ways.rest[at]
	ways.rest[at] = min(mostRest, 2*ways.rest[at])
}

// longer is how many times as long a way is as it was in the beginning: each time
// that all were taken, twice, up to eight times.
func (ways *ways) longer() int { return 1 << min(ways.taken/len(ways.list), 3) }
