package pairs_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
	"github.com/devmap-dev/devmap/planner/internal/solve/pairs"
)

// TestMeet: labels from both ends meet in the division whose larger load is the least, where
// cells are fine enough; with few cells it is still one, and where none is within limits
// and rooms there is none.
func TestMeet(t *testing.T) {
	t.Parallel()
	divide := pairs.New()
	found, none, tight, lost := 0, 0, 0, 0
	for seed := range uint64(5000) {
		pair := draw(rand.New(rand.NewPCG(seed, 3)))
		if !pair.exact() {
			continue
		}
		least, roomless := math.Inf(1), math.Inf(1) // with rooms, without
		graphtest.EachSet(len(pair.items), func(first func(int) bool) {
			is, within := pair.of(first)
			if larger := max(is.One, is.Two); within {
				least = min(least, larger)
			} else if larger <= pair.Limit && is.One+is.Two <= pair.Both {
				roomless = min(roomless, larger)
			}
		})
		if roomless < least {
			tight++
		}
		for _, cells := range []int{2000, 2} {
			sides, loads := divide.Meet(context.Background(), pair.layOut(), pair.Pair, pairs.Cells{Fewest: cells, Most: cells})
			if sides == nil {
				if cells > 2 && !math.IsInf(least, 1) {
					t.Errorf("seed %d: nothing found, where %v is possible", seed, least)
				}
				continue
			}
			is, within := pair.of(func(at int) bool { return sides[at] })
			if is != loads || !within {
				t.Errorf("seed %d: the sides %v of loads %v come to %v; within limits and rooms: %v", seed, sides, loads, is, within)
			}
			switch larger := max(is.One, is.Two); {
			case cells > 2 && larger > least:
				t.Errorf("seed %d: %v found, where %v is possible", seed, larger, least)
			case larger > least:
				lost++
			default:
			}
		}
		if math.IsInf(least, 1) {
			none++
		} else {
			found++
		}
	}
	if found < 500 || none < 100 || tight < 100 || lost < 5 {
		t.Errorf("%d divided, %d not, %d of which bytes bind, %d of which two cells lose the least", found, none, tight, lost)
	}
}
