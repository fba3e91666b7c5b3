package anyplace

import (
	"math/rand/v2"
	"slices"
)

// member is an assignment that the search may go on from, and its largest load.
type member struct {
	place []int32
	value float64
}

// pool has the ends of unlike searches. From the best alone a search stays where it is:
// what is better is often near one that is worse.
type pool []member

// poolSize is how many there are at most.
const poolSize = 6

// nobody is no member's number.
const nobody = -1

// offer takes what a search from a member came to in its stead, or, from nobody, in the
// worst's stead where there is no room: if it is better, and no other is as good, which
// mostly is the same.
func (pool *pool) offer(from int, place []int32, value float64) {
	for i, known := range *pool {
		if i != from && known.value == value {
			return
		}
	}
	if from == nobody {
		if len(*pool) < poolSize {
			*pool = append(*pool, member{slices.Clone(place), value})
			return
		}
		from = pool.extreme(func(one, two float64) bool { return one > two })
	}
	if value < (*pool)[from].value {
		(*pool)[from] = member{slices.Clone(place), value}
	}
}

// extreme is the member whose value comes before all others'.
func (pool *pool) extreme(before func(one, two float64) bool) (found int) {
	for i, known := range *pool {
		if before(known.value, (*pool)[found].value) {
			found = i
		}
	}
	return found
}

// pick is the best, and half of the time any where the search stands still.
func (pool *pool) pick(rng *rand.Rand, still bool) int {
	if still && rng.IntN(2) == 0 {
		return rng.IntN(len(*pool))
	}
	return pool.extreme(func(one, two float64) bool { return one < two })
}

// two are unlike ones.
func (pool *pool) two(rng *rand.Rand) (one, two *member) {
	first, second := rng.IntN(len(*pool)), rng.IntN(len(*pool)-1)
	if second >= first {
		second++
	}
	return &(*pool)[first], &(*pool)[second]
}
