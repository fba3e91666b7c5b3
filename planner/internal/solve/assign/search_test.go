package assign

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPrices: the search answers alike with and without the linear program's
// prices, asked for at every node, and what the program refutes does not fit.
func TestPrices(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	refuted, fit, searched := 0, 0, 0
	for trial := range 600 {
		k := 2 + r.IntN(4)
		p := Problem{Budgets: slices.Repeat([]int64{1}, k)}
		most := 5 + r.Int64N(200)
		for range k*2 + r.IntN(3*k) {
			p.Sizes = append(p.Sizes, most/3+r.Int64N(most))
		}
		it := newItems(&p)
		room := max((it.total+int64(k)-1)/int64(k)+r.Int64N(3), it.weight[0])
		caps := slices.Repeat([]int64{room}, k)
		if trial%2 == 1 { // two groups
			caps[0] += room / 2
			caps[1] -= room / 2
		}
		plain := newSearch(t.Context(), it, caps, 1<<40)
		want := plain.run()
		if _, _, _, refutes, _ := it.dual(t.Context(), plain.caps, newSearch(t.Context(), it, caps, 0).left, &pool{}); refutes {
			refuted++
			if want == yes {
				t.Fatalf("%v fit on %d, which the program refutes", it.weight, caps)
			}
		}
		// Prices of other rooms prove less here, and leave more to the search.
		priced := newSearch(t.Context(), it, caps, 1<<40)
		of, _, _, _, ok := it.dual(t.Context(), []int64{room + most/4}, []int{k}, &pool{})
		table := newKnapsack(it, priced.caps[0])
		if !ok || table == nil {
			t.Fatal("no tables")
		}
		table.fill(it, of)
		var dearest []int64
		for _, c := range priced.caps {
			dearest = append(dearest, table.best(0, c))
		}
		priced.price(of, dearest, table)
		priced.again, priced.known = r.Int64N(3), &pool{}
		if got := priced.run(); got != want {
			t.Fatalf("%v on %d: %d with prices, %d without", it.weight, caps, got, want)
		}
		if want == yes {
			fit++
			for d, load := range it.loads(priced.place(caps)) {
				if load > caps[d]*it.unit {
					t.Fatalf("%v on %d: device %d holds %d units of %d", it.weight, caps, d, load, it.unit)
				}
			}
		}
		if priced.count > 0 && priced.nodes < 1<<40-1 {
			searched++
		}
	}
	if refuted < 50 || fit < 50 || searched < 30 {
		t.Errorf("%d refuted, %d fit, %d searched in vain: the instances test too little", refuted, fit, searched)
	}
}

// TestReach compares subset sums, exact and in quanta, with all sums.
func TestReach(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		var size []int64
		var count []int
		scale := []int64{1, 1, exactSums / 3}[r.IntN(3)]
		sums := map[int64]bool{0: true}
		for range 1 + r.IntN(4) {
			s, n := (1+r.Int64N(90))*scale+r.Int64N(scale), 1+r.IntN(3)
			size, count = append(size, s), append(count, n)
			for range n {
				for _, x := range slices.Sorted(maps.Keys(sums)) {
					sums[x+s] = true
				}
			}
		}
		most := (50 + r.Int64N(300)) * scale
		var got reach
		got.build(size, count, most)
		for range 50 {
			low := r.Int64N(most + 1)
			high := low + r.Int64N(min(most-low, 3*scale)+1)
			want := false
			for x := range sums {
				want = want || low <= x && x <= high
			}
			if have := got.any(0, low, high); want && !have || have && !want && got.quantum == 1 {
				t.Fatalf("%v × %v up to %d: any(%d, %d) is %v", size, count, most, low, high, have)
			}
		}
		if got.quantum > 1 {
			continue
		}
		want := int64(0)
		for x := range sums {
			if x <= most {
				want = max(want, x)
			}
		}
		if have := got.most(most); have != want {
			t.Fatalf("%v × %v: the largest sum up to %d is %d, want %d", size, count, most, have, want)
		}
	}
}
