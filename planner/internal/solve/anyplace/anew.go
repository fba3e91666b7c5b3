package anyplace

import (
	"context"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/stagesearch"
)

// anewWork is what is done in a round, and anewSteps are those for each item of the
// shortest run.
const anewWork, anewSteps = 125_000_000, 25

// anew places what some devices hold anew, by annealing among these alone, again and
// again, and goes on from there where they are no worse (large neighbourhood search:
// Shaw, CP 1998). Short runs find what is better the sooner, long ones find more: each
// length has the same part of the work (Luby, Sinclair and Zuckerman 1993).
func (find *finder) anew(ctx context.Context, from []int32, value float64, work int) {
	if find.devices < 3 {
		return
	}
	find.unit, find.squarings = value, steep
	find.refresh(from)
	find.forget()
	find.note()
	at, divide := slices.Clone(from), find.split
	for stop := divide.Work + work; divide.Work < stop && !find.over(ctx); {
		find.some(2 + find.rng.IntN(4))
		if !find.settled(ctx) {
			copy(find.place, at)
			find.refresh(find.place)
		}
		copy(at, find.place)
	}
	find.scope = scope{}
	find.note()
	find.keep("what some devices hold placed anew")
}

// settled anneals within the scope and divides its pairs; false where that ends worse.
func (find *finder) settled(ctx context.Context) bool {
	judge, devices := find.judge(), find.scope.devices
	before := find.energyOf(devices, judge)
	find.runs++
	find.squarings = lowest + find.rng.IntN(4)
	steps := anewSteps * stagesearch.Luby(find.runs) * len(find.scope.items)
	find.split.Work += 200 * steps // as long as a step takes
	find.run(ctx, steps, [...]float64{0.003, 0.01, 0.03, 0.1}[find.rng.IntN(4)], 1e-4)
	find.squarings = judge
	find.refresh(find.place)
	for i, device := range devices {
		for _, other := range devices[:i] {
			find.split.divide(ctx, find.annealer, device, other, nil)
			find.split.Work += 20 * len(find.Wires)
		}
	}
	_, fits := find.largest()
	return fits && find.energyOf(devices, judge) <= before
}

// judge is the power under which devices are to be better: where the busiest is among
// them its load counts, else their balance too.
func (find *finder) judge() int {
	busiest := slices.Max(find.load)
	for _, device := range find.scope.devices {
		if find.load[device] == busiest {
			return steep
		}
	}
	return high
}

// energyOf some devices under a power.
func (find *finder) energyOf(devices []int32, squarings int) (sum float64) {
	find.squarings = squarings
	for _, device := range devices {
		sum += find.energy(device, find.load[device], find.bytes[device])
	}
	return sum
}

// some makes the scope a few devices that hang together, so many or fewer: the busiest,
// or any, and such that share wires with one of them.
func (find *finder) some(count int) {
	find.scope = scope{}
	device, other := find.twoDevices()
	devices := []int32{device, other}
	for tries := 4 * count; len(devices) < min(count, find.devices) && tries > 0; tries-- {
		from := devices[find.rng.IntN(len(devices))]
		if item := find.anyOf(from, from); item >= 0 {
			if next := find.neighbour(item); !slices.Contains(devices, next) {
				devices = append(devices, next)
			}
		}
	}
	allowed, items := make([]bool, find.devices), []int32{}
	for _, device := range devices {
		allowed[device] = true
	}
	for item, device := range find.place {
		if allowed[device] {
			items = append(items, int32(item))
		}
	}
	if len(items) > 0 {
		find.scope = scope{items: items, devices: devices, allowed: allowed}
	}
}
