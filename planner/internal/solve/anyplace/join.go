package anyplace

import (
	"context"
	"slices"
)

// joins is how many pairs of the pool are joined in a round, and joinSteps are those for
// each item that differs.
const joins, joinSteps = 4, 800

// join goes on from what is between two of the pool, as often as joins says: a search
// from the best alone does not come there (memetic algorithms; path relinking: Glover,
// Laguna and Martí 2000).
func (find *finder) join(ctx context.Context) {
	if len(find.pool) < 2 {
		return
	}
	find.base = nobody
	for range joins {
		if find.over(ctx) {
			return
		}
		one, two := find.pool.two(find.rng)
		if find.between(ctx, one.place, two.place) {
			find.polish(ctx, "annealing of what two answers differ in")
			find.anew(ctx, slices.Clone(find.best), find.bestLoad, anewWork/joins)
		}
	}
}

// between anneals from one assignment on: only what the other has elsewhere moves, there
// and back.
func (find *finder) between(ctx context.Context, one, two []int32) (some bool) {
	match := find.matched(one, two)
	between := scope{one: one, two: make([]int32, len(two))}
	for item, device := range two {
		if between.two[item] = match[device]; between.two[item] != one[item] {
			between.items = append(between.items, int32(item))
		}
	}
	if len(between.items) < 2 {
		return false
	}
	find.scope = between
	hot := [...]float64{0.02, 0.06, 0.2}[find.rng.IntN(3)]
	find.onwards(ctx, one, find.value, joinSteps*len(between.items), way{byJoins, lowest + find.rng.IntN(2), hot, false})
	find.scope = scope{}
	return find.found()
}

// matched tells for each device of the second assignment one of the first, of its kind:
// those that have the most work in common first.
func (find *finder) matched(one, two []int32) []int32 {
	shared := make([][]float64, find.devices)
	for device := range shared {
		shared[device] = make([]float64, find.devices)
	}
	for item := range one {
		shared[two[item]][one[item]] += find.Time[find.kind[one[item]]][item]
	}
	match, taken := slices.Repeat([]int32{nobody}, find.devices), make([]bool, find.devices)
	for range find.devices {
		from, to, most := 0, 0, -1.0
		for device := range find.devices {
			for candidate := range find.devices {
				if match[device] == nobody && !taken[candidate] && find.kind[device] == find.kind[candidate] &&
					shared[device][candidate] > most {
					from, to, most = device, candidate, shared[device][candidate]
				}
			}
		}
		match[from], taken[to] = int32(to), true
	}
	return match
}
