package anyplace

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
)

// drawn is a finder at a cooled answer, of a drawn problem with two kinds of devices.
func drawn(seed uint64) *finder {
	random := rand.New(rand.NewPCG(seed, 31))
	problem := graphtest.NearChain(random, 40, 30, graph.Kind{Count: 4, Capacity: []float64{math.Inf(1), 1200}[seed%2]},
		graph.Kind{Count: 2, Capacity: math.Inf(1), FreeTransfers: seed%3 == 0})
	call := newAnywhere(graph.NewInstance(problem, problem.Groups()), graph.Settings{Seed: seed})
	find := call.newFinder(newSplitter(context.Background(), call.Netlist, splitCells), 0)
	find.cool(context.Background(), 1, 3000, way{byCooling, low, 1, false})
	find.keep("cooled")
	return find
}

// What some devices hold is placed anew among them: nothing else moves, and what is kept
// is no worse and within the capacities.
func TestOnlyTheScopeMoves(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	moved, settled := 0, 0
	for seed := range uint64(40) {
		find := drawn(seed)
		if find.at == nil {
			continue
		}
		find.unit, find.squarings = find.value, steep
		find.refresh(find.at)
		find.some(2 + int(seed%4))
		among := find.scope.devices
		if len(among) < 2 || len(among) > 2+int(seed%4) {
			t.Fatalf("seed %d: devices %v", seed, among)
		}
		before, power := find.energyOf(among, find.judge()), find.judge()
		good := find.settled(ctx)
		for item, was := range find.at {
			now := find.place[item]
			if now != was && (!slices.Contains(among, was) || !slices.Contains(among, now)) {
				t.Fatalf("seed %d: item %d went from %d to %d, not within %v", seed, item, was, now, among)
			}
			if now != was {
				moved++
			}
		}
		_, fits := find.largest()
		if after := find.energyOf(among, power); good && (!fits || after > before*(1+1e-9)) {
			t.Errorf("seed %d: %v from %v, fits %v", seed, after, before, fits)
		}
		if good {
			settled++
		}
	}
	if moved < 100 || settled < 10 {
		t.Errorf("%d items moved, %d times to what is no worse: there is nothing to see", moved, settled)
	}
}

// Between two answers only what they differ in moves, between its two devices; devices
// whose names alone differ do not.
func TestBetweenTwoAnswers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	moved := 0
	for seed := range uint64(40) {
		find := drawn(seed)
		if find.at == nil {
			continue
		}
		one := slices.Clone(find.at)
		find.refresh(scatter(find.Netlist, find.rng))
		find.cool(ctx, find.value, 3000, way{byCooling, low, 1, false})
		other := slices.Clone(find.place)
		turned := slices.Clone(other) // the devices of a kind in another order
		for item, device := range turned {
			if device < 4 {
				turned[item] = (device + 1) % 4
			}
		}
		match, again := find.matched(one, other), find.matched(one, turned)
		for device := range int32(find.devices) {
			if find.kind[match[device]] != find.kind[device] {
				t.Fatalf("seed %d: device %d is matched with %d, of another kind", seed, device, match[device])
			}
			if device < 4 && again[(device+1)%4] != match[device] {
				t.Errorf("seed %d: %v, and in another order %v", seed, match, again)
			}
		}
		find.between(ctx, one, other)
		for item, was := range one {
			now := find.place[item]
			if now != was && now != match[other[item]] {
				t.Fatalf("seed %d: item %d went from %d to %d", seed, item, was, now)
			}
			if now != was {
				moved++
			}
		}
		if find.scope.items != nil || !math.IsInf(find.known, 1) {
			t.Fatalf("seed %d: the scope stays", seed)
		}
		if find.between(ctx, one, slices.Clone(one)) {
			t.Errorf("seed %d: something between an answer and itself", seed)
		}
	}
	if moved < 50 {
		t.Errorf("%d items moved: there is nothing to see", moved)
	}
}

// A run that cools from an answer ends at another: where it began is forgotten, unless it
// found what is better.
func TestWhereItBeganIsForgotten(t *testing.T) {
	t.Parallel()
	ended := 0
	for seed := range uint64(20) {
		find := drawn(seed)
		if find.at == nil {
			continue
		}
		find.onwards(context.Background(), find.at, find.value, 4096, way{byCooling, low, 0.2, false})
		if find.found() {
			ended++
			if slices.Equal(find.best, find.at) {
				t.Errorf("seed %d: it ends where it began", seed)
			}
		}
	}
	if ended < 10 {
		t.Errorf("%d runs of 20 ended within the capacities: there is nothing to see", ended)
	}
}
