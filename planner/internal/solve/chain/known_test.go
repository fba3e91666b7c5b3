package chain_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// TestKnown solves chains with known answers. For the nearly equal costs, torchgpipe's
// blockpartition gives a wrong answer.
func TestKnown(t *testing.T) {
	repeat := func(c int64, n int) []int64 { return slices.Repeat([]int64{c}, n) }
	for _, tt := range []struct {
		name  string
		costs []int64
		k     int
		peaks []int64
		bound chain.Bound
	}{
		{"nearEqual", append(repeat(10, 6), repeat(11, 2)...), 2, []int64{40, 42}, chain.BoundSearch},
		{"nearEqualLong", append(repeat(100, 30), repeat(101, 2)...), 4, []int64{800, 800, 800, 802}, chain.BoundSearch},
		{"oneLarge", []int64{1, 1, 8, 3, 1, 1, 1, 1, 1}, 3, nil, chain.BoundUnit},
		{"exact", repeat(5, 12), 4, []int64{15, 15, 15, 15}, chain.BoundAverage},
		{"oneOver", repeat(5, 13), 4, []int64{20, 15, 15, 15}, chain.BoundSearch},
		{"moreDevices", []int64{7, 7}, 4, []int64{7, 7, 0, 0}, chain.BoundUnit},
		{"noItems", nil, 3, []int64{0, 0, 0}, chain.BoundUnit},
		{"nothing", repeat(0, 5), 2, []int64{0, 0}, chain.BoundUnit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := solve(t, uniform(tt.costs, tt.k), chain.Settings{})
			if tt.peaks != nil && !slices.Equal(res.Peaks, tt.peaks) || tt.peaks == nil && res.Value.Peak != 8 {
				t.Errorf("Peaks = %v, want %v", res.Peaks, tt.peaks)
			}
			if !res.Optimal() || !res.SquaresProved || res.Stopped || res.Bound != tt.bound {
				t.Errorf("Optimal %v, SquaresProved %v, Stopped %v, Bound %q", res.Optimal(), res.SquaresProved, res.Stopped, res.Bound)
			}
		})
	}
}

// TestTiedEmbedding is Llama-3.2-1B in bfloat16: embedding and head are one tensor larger than four
// layers. It is best alone on a device.
func TestTiedEmbedding(t *testing.T) {
	const embedding, layer = 525_336_576, 121_643_008
	p := chain.Problem{
		Items: 16, Groups: 1, Budgets: slices.Repeat([]int64{80 << 30}, 8), Additive: true,
		Peak: func(_, a, b int, groups uint64) int64 {
			return int64(b-a)*layer + int64(groups)*embedding
		},
	}
	res := solve(t, p, chain.Settings{})
	want := []int64{embedding, 3 * layer, 3 * layer, 2 * layer, 2 * layer, 2 * layer, 2 * layer, 2 * layer}
	if !slices.Equal(res.Peaks, want) || res.GroupDevice[0] != 0 {
		t.Errorf("group on %v, peaks %v; want %v", res.GroupDevice, res.Peaks, want)
	}
	if !res.Optimal() || !res.SquaresProved || res.Bound != chain.BoundUnit {
		t.Errorf("Optimal %v, SquaresProved %v, Bound %q", res.Optimal(), res.SquaresProved, res.Bound)
	}
}

// TestOneProbe stops as soon as possible.
func TestOneProbe(t *testing.T) {
	costs := []int64{31, 7, 22, 5, 41, 18, 9, 3, 27, 33}
	res := solve(t, uniform(costs, 3), chain.Settings{Probes: 1})
	best := solve(t, uniform(costs, 3), chain.Settings{})
	if !res.Stopped || res.Optimal() || res.LowerBound.Cmp(best.Value) > 0 {
		t.Errorf("Stopped %v, Optimal %v, bound %v, optimum %v", res.Stopped, res.Optimal(), res.LowerBound, best.Value)
	}
}

// TestConflict expects an error with the two items in conflict.
func TestConflict(t *testing.T) {
	for _, tt := range []struct {
		name            string
		pins, groupPins []int
		follow          [][]int
		items, devices  [2]int
		groups          [2]int
		across          int
		text            string
	}{
		{
			name: "backwards", pins: []int{-1, 2, -1, 1, -1},
			items: [2]int{1, 3}, devices: [2]int{2, 1}, groups: [2]int{-1, -1}, across: -1,
			text: "item 1 on device 2, item 3 on device 1, but the chain runs in device order",
		},
		{
			name: "follower", pins: []int{-1, 2, -1, -1, -1}, groupPins: []int{0}, follow: [][]int{{4}},
			items: [2]int{1, 4}, devices: [2]int{2, 0}, groups: [2]int{-1, 0}, across: -1,
			text: "item 4 on device 0 (follows group 0)",
		},
		{
			name: "across", pins: []int{-1, 0, -1, 1, -1}, groupPins: []int{-1}, follow: [][]int{{0, 4}},
			items: [2]int{1, 3}, devices: [2]int{0, 1}, groups: [2]int{-1, -1}, across: 0,
			text: "but group 0 keeps both on one device",
		},
		{
			name: "twice", groupPins: []int{0, 1}, follow: [][]int{{2}, {2}},
			items: [2]int{2, 2}, devices: [2]int{0, 1}, groups: [2]int{0, 1}, across: -1,
			text: "item 2 on device 0 (follows group 0), item 2 on device 1 (follows group 1)",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := uniform(make([]int64, 5), 3)
			p.Pins, p.GroupPins, p.Follow, p.Groups = tt.pins, tt.groupPins, tt.follow, len(tt.groupPins)
			_, err := chain.Solve(context.Background(), p, chain.Settings{})
			var got *chain.ConflictError
			if !errors.As(err, &got) {
				t.Fatalf("error %v", err)
			}
			want := chain.ConflictError{Items: tt.items, Devices: tt.devices, Groups: tt.groups, Across: tt.across}
			if *got != want || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%+v: %v", *got, err)
			}
		})
	}
}

// TestMalformed expects an error with all faults.
func TestMalformed(t *testing.T) {
	_, err := chain.Solve(context.Background(), chain.Problem{
		Items: 2, Groups: 1, Budgets: []int64{5, 0, math.MaxInt64},
		Pins: []int{3}, Follow: [][]int{{2}}, GroupPins: []int{-2},
	}, chain.Settings{})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"no Peak function", "budget of device 1 is 0 bytes", "add up to more", "1 item pins for 2",
		"item 0 is pinned to device 3 of 3", "group 0 is pinned to device -2", "followed by item 2 of 2",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// TestShare compares shares near the limits of int64.
func TestShare(t *testing.T) {
	const huge = math.MaxInt64
	for _, tt := range []struct {
		a, b chain.Share
		want int
	}{
		{chain.Share{Peak: huge, Budget: huge - 1}, chain.Share{Peak: huge - 1, Budget: huge - 2}, -1},
		{chain.Share{Peak: huge - 1, Budget: huge}, chain.Share{Peak: huge - 2, Budget: huge - 1}, +1},
		{chain.Share{Peak: 2, Budget: 6}, chain.Share{Peak: 1, Budget: 3}, 0},
		{chain.Share{Peak: 0, Budget: 6}, chain.Share{Peak: 1, Budget: huge}, -1},
	} {
		if got := tt.a.Cmp(tt.b); got != tt.want || tt.b.Cmp(tt.a) != -got {
			t.Errorf("%v against %v: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
