package assign_test

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/minmax"
	"github.com/devmap-dev/devmap/planner/internal/solve/assign"
)

func solve(t *testing.T, p assign.Problem, s assign.Settings) assign.Solution {
	t.Helper()
	got, err := assign.Solve(t.Context(), p, s)
	if err != nil {
		t.Fatal(err)
	}
	check(t, p, got)
	return got
}

func equal(sizes []int64, k int) assign.Problem {
	return assign.Problem{Sizes: sizes, Budgets: slices.Repeat([]int64{1}, k)}
}

// TestFixtures: of the instances in planner/internal/minmax nine in ten
// are proved within 60,000 filled devices each, none is further than 1 in 1000
// from its bound, and twice the same is the same.
func TestFixtures(t *testing.T) {
	instances, err := minmax.Instances()
	if err != nil {
		t.Fatal(err)
	}
	proved := 0
	for _, m := range instances {
		p := equal(m.Sizes, m.Devices)
		s := solve(t, p, assign.Settings{Nodes: 60_000})
		if s.Optimal() {
			proved++
		} else if !s.Early() || (s.Value-s.LowerBound)/s.Value > 1e-3 {
			t.Errorf("%s %d/%d: %v over %v, stopped %v", m.Kind, len(m.Sizes), m.Devices, s.Value, s.LowerBound, s.Early())
		}
		if s.Nodes < 5000 {
			if again := solve(t, p, assign.Settings{Nodes: 60_000}); !reflect.DeepEqual(s, again) {
				t.Errorf("%s %d/%d: a second run gives another answer", m.Kind, len(m.Sizes), m.Devices)
			}
		}
	}
	if 10*proved < 9*len(instances) {
		t.Errorf("%d of %d proved", proved, len(instances))
	}
}

// TestBytes: a model of equal layers in bytes, with no common divisor to speak
// of, is proved; so is one on devices of several kinds that hold something.
func TestBytes(t *testing.T) {
	var sizes []int64
	for range 80 {
		sizes = append(sizes, 316_669_953, 1_410_334_721)
	}
	sizes = append(sizes, 2_101_346_304, 2_101_346_304, 16_385)
	for name, p := range map[string]assign.Problem{
		"equal":   equal(sizes, 8),
		"unequal": {Sizes: sizes, Budgets: []int64{79e9, 79e9, 47e9, 47e9, 23e9, 23e9}, Fixed: []int64{1e9, 5e8, 5e8, 5e8, 0, 3e9}},
	} {
		t.Run(name, func(t *testing.T) {
			s := solve(t, p, assign.Settings{Gap: 1e-3})
			if gap := (s.Value - s.LowerBound) / s.Value; gap > 1e-3 {
				t.Errorf("value %v, bound %v: a gap of %v", s.Value, s.LowerBound, gap)
			}
		})
	}
}

// TestKnown: the arguments for the bound, one instance each.
func TestKnown(t *testing.T) {
	layers := []int64{2004, 2004, 1}
	for i := range 297 {
		layers = append(layers, []int64{302, 1345}[i%2])
	}
	tests := map[string]struct {
		problem assign.Problem
		value   float64
		bound   string
	}{
		"nothing":      {equal(nil, 3), 0, "average"},
		"even":         {equal([]int64{3, 3, 2, 2, 2}, 2), 6, "average"},
		"one large":    {equal([]int64{10, 1, 1}, 2), 10, "largest item"},
		"k+1 items":    {equal([]int64{5, 5, 5, 1}, 2), 10, "how many of the largest items fit on a device"},
		"subset sums":  {equal(layers, 10), 24814, "subset sums"}, // the average is 24801
		"even sums":    {equal([]int64{5, 5, 5, 5, 5, 1}, 2), 15, "how many of the largest items fit on a device"},
		"fixed alone":  {assign.Problem{Sizes: []int64{1, 1}, Budgets: []int64{1, 1}, Fixed: []int64{9, 0}}, 9, "fixed load"},
		"two budgets":  {assign.Problem{Sizes: []int64{4, 2}, Budgets: []int64{4, 2}}, 1, "average"},
		"no room left": {assign.Problem{Sizes: []int64{6}, Budgets: []int64{2, 3}, Fixed: []int64{0, 4}}, 3, "largest item"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := solve(t, test.problem, assign.Settings{})
			if s.Value != test.value || !s.Optimal() || s.Bound != test.bound {
				t.Errorf("got %+v, want %v by %q", s, test.value, test.bound)
			}
		})
	}
}

// TestStops: what cannot be proved soon (40-bit sizes) ends with the context.
func TestStops(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	sizes := make([]int64, 120)
	for i := range sizes {
		sizes[i] = 1 + r.Int64N(1<<40)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	s, err := assign.Solve(ctx, equal(sizes, 7), assign.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, equal(sizes, 7), s)
	if s.Optimal() || !s.Early() || (s.Value-s.LowerBound)/s.Value > 1e-3 {
		t.Errorf("value %v, bound %v, optimal %v, stopped %v", s.Value, s.LowerBound, s.Optimal(), s.Early())
	}
}

func TestCheck(t *testing.T) {
	_, err := assign.Solve(t.Context(), assign.Problem{Sizes: []int64{-1, 1 << 60}, Budgets: []int64{0}, Fixed: []int64{-2, 1}}, assign.Settings{})
	const want = `2 fixed loads for 1 devices
sizes[0]: -1 is negative
budgets[0]: 0 is not positive
fixed[0]: -2 is negative
sizes and fixed loads add up to 2^60 or more; use a larger unit`
	if err == nil || err.Error() != want {
		t.Errorf("error\n%v\nwant\n%s", err, want)
	}
	if _, err := assign.Solve(t.Context(), assign.Problem{}, assign.Settings{}); err == nil {
		t.Error("no devices and no error")
	}
}
