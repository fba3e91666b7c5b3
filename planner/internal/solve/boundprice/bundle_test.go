package boundprice

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
)

// drawnBundle is of sets that partitions of the items leave, of one kind of device or
// several, and which prices can be worth more than all devices take at.
func drawnBundle(random *rand.Rand) (out *bundle, price, rent []float64) {
	items, kinds := 3+random.IntN(20), 1+random.IntN(3)
	scale, count := make([]float64, items), make([]float64, kinds)
	for item := range scale {
		scale[item] = 0.1 + random.Float64()
	}
	for kind := range count {
		count[kind] = float64(1 + random.IntN(4))
	}
	devices := floats.Sum(count)
	sets := make([]column, 0, 4*items)
	for range 1 + random.IntN(4*items) {
		set := column{kind: random.IntN(kinds)}
		for item := range int32(items) {
			if random.Float64() < 0.8/devices {
				set.items = append(set.items, item)
			}
		}
		sets = append(sets, set)
	}
	for range items {
		price = append(price, random.Float64()/float64(items))
	}
	for range kinds {
		rent = append(rent, 1/devices)
	}
	return newBundle(sets, count, scale), price, rent
}

// TestProject: where a projection ends no set is worth more than its rent and all items
// are worth what was asked for; and no point of these is nearer, as multipliers say that
// are not negative, and zero where a bound is not met (Karush, Kuhn and Tucker).
func TestProject(t *testing.T) {
	t.Parallel()
	reached, tight, several := 0, 0, 0
	for seed := range uint64(400) {
		bundle, price, rent := drawnBundle(rand.New(rand.NewPCG(seed, 81)))
		bundle.begin(price, rent)
		const worth, within = 1.002, 1e-7
		if off := bundle.project(worth, within); off > within {
			continue // there may be none
		}
		reached++
		away, rents := slices.Clone(price), slices.Clone(rent)
		for item := range away {
			away[item] += bundle.gain * bundle.weight[item]
		}
		for at, set := range bundle.sets {
			over := -bundle.rent[set.kind]
			for _, item := range set.items {
				over += bundle.price[item]
				away[item] -= bundle.multiplier[at] * bundle.weight[item]
			}
			rents[set.kind] += bundle.multiplier[at] * bundle.ofRent[set.kind]
			if over > within {
				t.Errorf("seed %d: a set is worth %v more than its rent", seed, over)
			}
			if bundle.multiplier[at] < 0 || bundle.multiplier[at] > 0 && over < -1e-4 {
				t.Errorf("seed %d: a set of the multiplier %v is worth %v more than its rent", seed, bundle.multiplier[at], over)
			}
			if bundle.multiplier[at] > 0 {
				tight++
			}
		}
		if total := floats.Sum(bundle.price); total < worth-within || bundle.gain < 0 || bundle.gain > 0 && total > worth+1e-4 {
			t.Errorf("seed %d: all items are worth %v, of the multiplier %v", seed, total, bundle.gain)
		}
		if off := floats.Distance(away, bundle.price, math.Inf(1)); off > 1e-6 {
			t.Errorf("seed %d: prices are %v from where the multipliers lead", seed, off)
		}
		several += min(1, len(rent)-1)
		// Rents are where their multipliers lead, and then moved along their counts.
		for kind := range rents {
			rents[kind] = (rents[kind] - bundle.rent[kind]) / bundle.count[kind]
		}
		if len(rents) > 1 && floats.Max(rents)-floats.Min(rents) > 1e-6 {
			t.Errorf("seed %d: rents are off by unlike multiples of their counts: %v", seed, rents)
		}
		if total := floats.Dot(bundle.rent, bundle.count); math.Abs(total-1) > 1e-6 {
			t.Errorf("seed %d: rents come to %v", seed, total)
		}
	}
	if reached < 150 || tight < 500 || several < 80 {
		t.Errorf("%d projections ended, %d sets were tight, %d had several kinds", reached, tight, several)
	}
}

// TestNewton: after the step in all multipliers at once either all of these sets are worth
// their rents and all items what was asked for, or one has no multiplier any more; none
// is negative.
func TestNewton(t *testing.T) {
	t.Parallel()
	whole, stopped := 0, 0
	for seed := range uint64(300) {
		bundle, price, rent := drawnBundle(rand.New(rand.NewPCG(seed, 82)))
		bundle.begin(price, rent)
		const worth = 1.002
		bundle.newton(worth) // nothing has a multiplier
		for set := range bundle.sets {
			bundle.busy = append(bundle.busy, set)
		}
		for range 3 {
			bundle.sweep()
			bundle.total(worth)
		}
		before := bundle.rows()
		bundle.newton(worth)
		after := bundle.rows()
		if len(bundle.multiplier) > 0 && floats.Min(bundle.multiplier) < 0 || bundle.gain < 0 {
			t.Errorf("seed %d: multipliers %v and %v", seed, bundle.multiplier, bundle.gain)
		}
		if len(after) < len(before) || len(after) == 0 {
			stopped++
			continue
		}
		if again, _, _ := drawnBundle(rand.New(rand.NewPCG(seed, 82))); !reaches(again, price, rent, worth) {
			continue
		}
		whole++
		_, over := bundle.system(after, worth)
		for i, row := range after {
			if math.Abs(over.AtVec(i)) > 1e-5 {
				t.Errorf("seed %d: row %d is off by %v", seed, row, over.AtVec(i))
			}
		}
	}
	if whole < 150 || stopped < 3 {
		t.Errorf("%d whole steps, %d stopped", whole, stopped)
	}
}

// reaches says that there are prices as asked for.
func reaches(bundle *bundle, price, rent []float64, worth float64) bool {
	const within = 1e-6
	bundle.begin(price, rent)
	return bundle.project(worth, within) <= within
}
