package anyplace

import (
	"math/rand/v2"
	"testing"
)

// The pool keeps the best ends of unlike searches: a better end takes the stead of where
// it began, or of the worst, and none is there twice.
func TestPoolKeepsTheBestOfUnlikeOnes(t *testing.T) {
	t.Parallel()
	var pool pool
	for i := range poolSize {
		pool.offer(nobody, []int32{int32(i)}, float64(10+i))
	}
	pool.offer(nobody, []int32{20}, 20) // worse than all
	pool.offer(nobody, []int32{21}, 12) // as good as another
	pool.offer(3, []int32{22}, 14)      // worse than where it began
	for i, known := range pool {
		if len(pool) != poolSize || known.value != float64(10+i) || known.place[0] != int32(i) {
			t.Fatalf("member %d of %d: %v", i, len(pool), known)
		}
	}
	pool.offer(3, []int32{23}, 9)
	pool.offer(nobody, []int32{24}, 8)
	if pool[3].value != 9 || pool[poolSize-1].value != 8 {
		t.Errorf("%v: the end of a search takes the stead of its beginning, or of the worst", pool)
	}
	random, taken := rand.New(rand.NewPCG(1, 51)), make([]int, poolSize)
	for range 1200 {
		taken[pool.pick(random, true)]++
		if pool.pick(random, false) != poolSize-1 {
			t.Fatal("not the best, though it is still getting better")
		}
		if one, two := pool.two(random); one == two {
			t.Fatal("one and the same twice")
		}
	}
	for i, count := range taken {
		if want := map[bool]int{true: 700, false: 100}[i == poolSize-1]; count < want*3/4 || count > want*4/3 {
			t.Errorf("member %d is picked %d times of 1200, want about %d", i, count, want)
		}
	}
}
