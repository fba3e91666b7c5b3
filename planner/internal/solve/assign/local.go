package assign

import (
	"cmp"
	"context"
	"slices"
)

// rising orders devices by room.
func rising(caps []int64) []int {
	order := make([]int, len(caps))
	for device := range order {
		order[device] = device
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(caps[a], caps[b]) })
	return order
}

// improve takes work from the device of the largest share, by moving one item
// or exchanging two, as long as the larger share of the two devices falls and the
// context lasts. It changes place. It stops early with the context.
func (it *itemTable) improve(ctx context.Context, place []int) {
	loads := it.loads(place)
	share := func(device int, change int64) float64 {
		return float64(loads[device]+change*it.unit) / float64(it.problem.Budgets[device])
	}
	for range 4 * len(place) {
		if ctx.Err() != nil {
			return
		}
		worst := 0
		for device := range loads {
			if share(device, 0) > share(worst, 0) {
				worst = device
			}
		}
		best := share(worst, 0)
		give, take, to := -1, -1, -1
		try := func(a, b, device int, change int64) {
			// change goes from worst to d; b is what comes back, or −1
			if after := max(share(worst, -change), share(device, change)); after < best {
				best, give, take, to = after, a, b, device
			}
		}
		for a, device := range place {
			if device == worst {
				it.exchanges(place, a, try)
			}
		}
		if give < 0 {
			return
		}
		it.swap(place, loads, give, take, to)
	}
}

// exchanges tries item a with every device and with every smaller item elsewhere.
func (it *itemTable) exchanges(place []int, a int, try func(a, b, device int, change int64)) {
	for device := range it.problem.Budgets {
		if device != place[a] {
			try(a, -1, device, it.weight[a])
		}
	}
	for b := a + 1; b < len(place); b++ {
		if place[b] != place[a] && it.weight[b] < it.weight[a] {
			try(a, b, place[b], it.weight[a]-it.weight[b])
		}
	}
}

func (it *itemTable) swap(place []int, loads []int64, give, take, to int) {
	change := it.weight[give]
	from := place[give]
	place[give] = to
	if take >= 0 {
		change -= it.weight[take]
		place[take] = from
	}
	loads[from] -= change * it.unit
	loads[to] += change * it.unit
}
