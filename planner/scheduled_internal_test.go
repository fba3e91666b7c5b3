package planner

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/scheduletime"
)

// The two derivations of a bound agree, so that a bound 1 % above is refused.
func TestBoundsOfSchedules(t *testing.T) {
	random := rand.New(rand.NewPCG(45, 3))
	reasons := map[string]int{}
	for range 2000 {
		numbers := &scheduletime.Numbers{GPUs: 1 + random.IntN(5), Batches: 1 + random.IntN(20), Line: random.IntN(2) == 0, Joint: random.IntN(2) == 0}
		equal := 1 + random.Float64()
		for range numbers.GPUs + random.IntN(12) {
			work := equal
			if random.IntN(4) == 0 {
				work = 3 * random.Float64()
			}
			numbers.Work = append(numbers.Work, work)
			numbers.Forward, numbers.Input = append(numbers.Forward, work/3), append(numbers.Input, work/3)
			numbers.Extra = append(numbers.Extra, work/3)
			numbers.Saved, numbers.Made = append(numbers.Saved, 1+random.Float64()), append(numbers.Made, random.Float64())
		}
		numbers.Free = 20 * random.Float64() * float64(len(numbers.Work))
		bound, why := numbers.Bound()
		if bound > 1e6 { // no length is possible
			continue
		}
		reasons[why]++
		if err := checkNumbers(numbers, bound); err != nil {
			t.Errorf("%+v: %v (%s): %v", numbers, bound, why, err)
		}
		if err := checkNumbers(numbers, 1.01*bound); !errors.Is(err, errNumbers) {
			t.Errorf("%+v: 1 %% above %v (%s): %v", numbers, bound, why, err)
		}
	}
	for _, why := range []string{"work of stages in line", "equal shares of the work", "whole blocks on each GPU", "lifetimes and recomputation within all memory"} {
		if reasons[why] < 20 {
			t.Errorf("%d bounds rest on %s", reasons[why], why)
		}
	}
}
