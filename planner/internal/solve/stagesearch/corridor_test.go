package stagesearch

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/dags"
)

// spread is a search whose placement is a linear extension's, cut evenly.
func spread(chain *Chain, order []int, seed uint64) (*Search, []int) {
	search, place := New(chain, seed, 1), make([]int, len(order))
	chain.Spread(order, place)
	search.Start(place)
	return search, place
}

// TestNear: the sets near a boundary are down-sets, each another one.
func TestNear(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		_, chain, order := posed(rand.New(rand.NewPCG(seed, 41)))
		search, _ := spread(chain, order, seed)
		walk := newCorridor(chain, search.random)
		for item, device := range search.place {
			walk.stage[item] = search.rank[device]
		}
		walk.grow(context.Background(), 32)
		for k, sets := range walk.sets {
			known := make(map[string]bool)
			for i := range sets {
				in := make([]byte, chain.items)
				for item := range in {
					if walk.stage[item] < int32(k) {
						in[item] = 1
					}
				}
				for at := int32(i); at > 0; at = sets[at].parent {
					in[sets[at].item] ^= 1
				}
				for item := range int32(chain.items) {
					for _, other := range chain.before.of(item) {
						if in[item] > in[other] {
							t.Fatalf("seed %d, boundary %d: %d is in set %d, what it comes after is not", seed, k, item, i)
						}
					}
				}
				if known[string(in)] {
					t.Fatalf("seed %d, boundary %d: set %d is there twice", seed, k, i)
				}
				known[string(in)] = true
			}
			if k > 0 && k < chain.devices && len(sets) < 10 {
				t.Errorf("seed %d, boundary %d: %d sets", seed, k, len(sets))
			}
		}
	}
}

// energyOf is the energy of stages by the definitions of loads and bytes; +Inf
// where they are not within the corridor's limits.
func (walk *corridor) energyOf(stage []int32) float64 {
	placed := newPlacement(walk.Chain)
	for item, at := range stage {
		placed.place[item] = walk.at[at]
	}
	placed.recount()
	sum := 0.0
	for device, load := range placed.load {
		if load > walk.limit*(1+1e-12) || placed.bytes[device] > placed.capacity[device] {
			return math.Inf(1)
		}
		sum += raised(load / walk.unit)
	}
	return sum
}

// TestCorridor: no choice of sets for all boundaries is better than the one found.
func TestCorridor(t *testing.T) {
	t.Parallel()
	better, joined := 0, 0
	for seed := range uint64(60) {
		_, chain, order := posed(rand.New(rand.NewPCG(seed, 42)))
		if chain.devices > 4 {
			continue
		}
		search, _ := spread(chain, order, seed)
		walk := newCorridor(chain, search.random)
		copy(walk.at, search.at)
		for item, device := range search.place {
			walk.stage[item] = search.rank[device]
		}
		walk.limit, walk.unit, walk.most = slices.Max(search.load), slices.Max(search.load), 1
		if chain.devices <= 3 {
			// On the way to another placement, too.
			search.Round(context.Background())
			walk.other = make([]int32, chain.items)
			for item, device := range search.place {
				walk.other[item] = search.rank[device]
			}
			joined++
		}
		walk.grow(context.Background(), 4)
		least, first := walk.least(), walk.energyOf(walk.stage)
		if math.IsInf(first, 1) {
			continue
		}
		found := walk.better(context.Background())
		if found {
			better++
		}
		if got := walk.energyOf(walk.stage); math.Abs(got-least) > 1e-9*least {
			t.Errorf("seed %d: an energy of %v, %v at first; the least in the corridor is %v", seed, got, first, least)
		}
	}
	if better < 10 || joined < 10 {
		t.Errorf("%d were better, %d joined with another: the test tries little", better, joined)
	}
}

// least is the least energy of all choices of sets, by trying them.
func (walk *corridor) least() float64 {
	least := math.Inf(1)
	stage := make([]int32, walk.items)
	var choose func(k int)
	choose = func(k int) {
		if k == walk.devices {
			least = min(least, walk.energyOf(stage))
			return
		}
		for i := range walk.sets[k] {
			kept := slices.Clone(stage)
			in, nested := make([]bool, walk.items), true
			for item, at := range walk.stage {
				in[item] = at < int32(k)
			}
			for at := int32(i); at > 0; at = walk.sets[k][at].parent {
				in[walk.sets[k][at].item] = !in[walk.sets[k][at].item]
			}
			for item := range stage {
				// What was before the boundary before must be before this one.
				nested = nested && (in[item] || stage[item] == int32(k-1))
				if !in[item] {
					stage[item] = int32(k)
				}
			}
			if nested {
				choose(k + 1)
			}
			copy(stage, kept)
		}
	}
	choose(1)
	return least
}

// TestFullRow: where a load falls only if items make room along a row of full
// devices, rounds with corridors get there. The least is 48.465, which CP-SAT
// proves; without corridors rounds stay at 49.274.
func TestFullRow(t *testing.T) {
	t.Parallel()
	line := dags.Line{Mode: "contiguous", Kind: "layered", Nodes: 160, Devices: 12, Capacity: 1.05, Transfers: 0.3, Seed: 4_100_004}
	problem, err := line.Anew()
	if err != nil {
		t.Fatal(err)
	}
	chain, order := chainOf(problem)
	search, _ := spread(chain, order, 4)
	largest := math.Inf(1)
	for round := 0; round < 12 && largest > 48.5; round++ {
		search.Round(context.Background())
		_, largest = search.Best()
	}
	if largest > 48.5 {
		t.Errorf("a largest load of %v; 48.465 is possible", largest)
	}
}
