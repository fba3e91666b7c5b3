package stagesearch

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestWays: each length has about the same part of the time, with every way in turn; a
// way that found something better is taken again.
func TestWays(t *testing.T) {
	t.Parallel()
	ways := ways{taken: make(map[int]int)}
	spent, first := make(map[int]int), make([]way, 0, len(allWays))
	for range 255 {
		way, length := ways.next()
		if spent[length] += length; length == 1 && len(first) < len(allWays) {
			first = append(first, way)
		}
		ways.told(false)
	}
	for length := 1; length <= 128; length *= 2 {
		if spent[length] != 128 {
			t.Errorf("rounds of length %d took %d; each length is to have 128", length, spent[length])
		}
	}
	if !slices.Equal(first, allWays[:]) {
		t.Errorf("the shortest rounds took %v", first)
	}
	way, length := ways.next()
	ways.told(true)
	if again, same := ways.next(); again != way || same != length {
		t.Errorf("%v of %d came after %v of %d, which was better", again, same, way, length)
	}
}

// TestLearn: a better placement from elsewhere is the best, a worse one is not, and the
// search stays where it is.
func TestLearn(t *testing.T) {
	t.Parallel()
	problem, chain, order := posed(rand.New(rand.NewPCG(3, 71)))
	fresh, start := spread(chain, order, 1)
	ahead, _ := spread(chain, order, 2)
	ahead.Round(context.Background())
	better, value := ahead.Best()
	if _, worse, err := problem.Score(start); err != nil || worse <= value {
		t.Fatalf("a round found nothing: %v, %v", worse, err)
	}
	stays := slices.Clone(fresh.place)
	fresh.Learn(better)
	if !slices.Equal(stays, fresh.place) {
		t.Error("the search is elsewhere")
	}
	if place, got := fresh.Best(); math.Abs(got-value) > 1e-9*value || !slices.Equal(place, better) {
		t.Errorf("the best is %v; %v was learnt", got, value)
	}
	ahead.Learn(start)
	if _, got := ahead.Best(); math.Abs(got-value) > 1e-9*value {
		t.Errorf("the best is %v after a worse one than %v was learnt", got, value)
	}
}
