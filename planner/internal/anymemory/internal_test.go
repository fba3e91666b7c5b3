package anymemory

import (
	"reflect"
	"testing"

	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// TestLeast: the relaxation takes the least of every figure of a run, of those
// too that a later version adds.
func TestLeast(t *testing.T) {
	var one, two timeline.Summary
	for i := range reflect.TypeFor[timeline.Summary]().NumField() {
		a, b := reflect.ValueOf(&one).Elem().Field(i), reflect.ValueOf(&two).Elem().Field(i)
		if a.Kind() == reflect.Bool {
			b.SetBool(true)
			continue
		}
		a.SetInt(1)
		b.SetInt(2)
	}
	if got := least(one, two); got != one {
		t.Errorf("%+v of %+v and %+v", got, one, two)
	}
	if got := least(two, one); got != one {
		t.Errorf("%+v of %+v and %+v", got, two, one)
	}
}

// TestBelow: the most bytes with a smaller share, exact past what a float64
// tells apart.
func TestBelow(t *testing.T) {
	for _, c := range []struct {
		v            chain.Share
		budget, want int64
	}{
		{chain.Share{Peak: 1, Budget: 2}, 10, 4},
		{chain.Share{Peak: 1, Budget: 3}, 10, 3},
		{chain.Share{Peak: 0, Budget: 3}, 10, -1},
		{chain.Share{Peak: 1<<60 - 1, Budget: 1 << 60}, 1 << 60, 1<<60 - 2},
		{chain.Share{Peak: 5, Budget: 2}, 1 << 40, 5<<39 - 1},
	} {
		if got := below(c.v, c.budget); got != c.want {
			t.Errorf("below %v of %d: %d, want %d", c.v, c.budget, got, c.want)
		}
	}
}
