package stagesearch

import "math/bits"

// way is how a round searches. Which suits a problem is not known before: where
// transfers are dear a low power of the loads, which rises, and much heat; where many
// items are to be balanced a high power and next to none; few large items need more
// heat than many small.
type way struct {
	how
	// power is how often a scaled load is squared in the beginning.
	power int
	// hot is the temperature in the beginning, as a part of the load.
	hot float64
}

// how is where a round begins.
type how int

const (
	onward how = iota // where the one before ended
	anew              // at the best placement
	kicked            // at the best placement, shaken again and again
)

// allWays are taken in turn; those beside each other are unlike, and every other one
// kicks.
var allWays = [...]way{
	{onward, 1, 0.1},
	{kicked, 5, 0.02},
	{anew, 3, 0.004},
	{kicked, 4, 0.1},
	{onward, 2, 0.04},
	{kicked, 5, 0.005},
	{anew, 2, 0.015},
	{kicked, 3, 0.05},
	{onward, 3, 0.3},
	{kicked, 5, 0.02},
	{anew, 5, 0.004},
	{kicked, 4, 0.1},
	{onward, 1, 0.04},
	{kicked, 5, 0.005},
	{anew, 1, 0.015},
	{kicked, 3, 0.05},
	{onward, 3, 0.1},
	{kicked, 5, 0.02},
	{anew, 4, 0.03},
	{kicked, 4, 0.1},
	{onward, 2, 0.3},
	{kicked, 5, 0.005},
	{anew, 3, 0.001},
	{kicked, 3, 0.05},
	{onward, 4, 1},
	{kicked, 5, 0.02},
	{anew, 2, 0.05},
	{kicked, 4, 0.1},
}

// blind is the way of a round in which no placement has kept the capacities yet.
func blind(round int) way {
	hot := [...]float64{0.04, 0.1, 0.04, 0.3}
	return way{how: onward, power: 3 + round%4, hot: hot[round/2%len(hot)]}
}

// ways are the ways of a search, for rounds of each length in turn. How long a round
// is to be is not known before either: each length has the same part of the time
// (Luby, Sinclair and Zuckerman, Information Processing Letters 47, 1993).
type ways struct {
	rounds int         // but for those that were taken again
	taken  map[int]int // by length
	way    way
	length int
	again  bool
}

// next is the way to take, and how many times as long as the shortest round: the same
// again where that found something better.
func (ways *ways) next() (way way, length int) {
	if !ways.again {
		ways.rounds++
		ways.length = Luby(ways.rounds)
		ways.way = allWays[ways.taken[ways.length]%len(allWays)]
		ways.taken[ways.length]++
	}
	return ways.way, ways.length
}

// told says whether the way was better than what there was.
func (ways *ways) told(better bool) { ways.again = better }

// Luby is the i-th of 1, 1, 2, 1, 1, 2, 4, 1, 1, 2, …, from 1.
func Luby(i int) int {
	for i&(i+1) != 0 {
		i -= 1<<(bits.Len(uint(i))-1) - 1
	}
	return (i + 1) / 2
}
