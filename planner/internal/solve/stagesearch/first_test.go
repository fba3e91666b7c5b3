package stagesearch

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFirst: as many as are asked for are in front, and none of the others ranks lower.
func TestFirst(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 61))
	for range 2000 {
		sets := make([]grown, 1+random.IntN(40))
		ranks := make([]float64, len(sets))
		for i := range sets {
			ranks[i] = float64(random.IntN(15))
			sets[i].rank = ranks[i]
		}
		most := random.IntN(len(sets) + 1)
		first(sets, most)
		slices.Sort(ranks)
		got := make([]float64, 0, len(sets))
		for _, set := range sets[:most] {
			got = append(got, set.rank)
		}
		slices.Sort(got)
		if !slices.Equal(got, ranks[:most]) {
			t.Fatalf("%v in front of %v, %d asked for", got, ranks, most)
		}
	}
}
