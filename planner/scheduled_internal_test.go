package planner

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/scheduletime"
)

// The two derivations of a bound agree, so that a bound 1 % above is refused. Memory makes some
// bounds longer.
func TestBoundsOfSchedules(t *testing.T) {
	random := rand.New(rand.NewPCG(45, 3))
	places, memory, none, wide := map[string]int{}, 0, 0, 0
	for round := range 600 {
		gpus := 2 + random.IntN(3)
		if round%100 == 0 {
			gpus = 16
		}
		numbers := &scheduletime.Numbers{
			Batches: 1 + random.IntN(20), Line: random.IntN(2) == 0, Loops: random.IntN(3) == 0, Joint: random.IntN(2) == 0,
			Freed: 1 + random.Float64(), Extra: random.Float64(), Update: random.Float64(),
		}
		numbers.Vee = !numbers.Line && !numbers.Loops || random.IntN(3) == 0
		for range 2*gpus + random.IntN(8) {
			work := 1 + 0.2*random.Float64()
			if random.IntN(4) == 0 {
				work = 3 * random.Float64()
			}
			numbers.Work, numbers.Forward, numbers.Input = append(numbers.Work, work), append(numbers.Forward, work/3), append(numbers.Input, work/3)
			saved := 1 + random.Float64()
			numbers.Saved, numbers.Made = append(numbers.Saved, saved), append(numbers.Made, saved-random.Float64()*min(saved, numbers.Freed))
			numbers.Static, numbers.Scratch = append(numbers.Static, 3*random.Float64()), append(numbers.Scratch, random.Float64())
		}
		for range gpus {
			numbers.Free = append(numbers.Free, 8*random.Float64()*float64(len(numbers.Work)))
		}
		bound := numbers.Bound(math.Inf(1))
		if bound > 1e6 { // no length is possible
			none++
			continue
		}
		if gpus == 16 {
			wide++
		}
		free := *numbers
		free.Free = make([]float64, gpus)
		for gpu := range free.Free {
			free.Free[gpu] = math.Inf(1)
		}
		if bound > 1.01*free.Bound(math.Inf(1)) {
			memory++
		}
		places[fmt.Sprintf("line %v, loops %v, V %v", numbers.Line, numbers.Loops, numbers.Vee)]++
		if err := checkNumbers(numbers, bound); err != nil {
			t.Errorf("%+v: %v: %v", numbers, bound, err)
		}
		if err := checkNumbers(numbers, 1.01*bound); !errors.Is(err, errNumbers) {
			t.Errorf("%+v: 1 %% above %v: %v", numbers, bound, err)
		}
	}
	if memory < 50 || none > 400 || len(places) < 6 || wide < 2 {
		t.Errorf("%d bounds are longer for memory, %d have no length, %d are of 16 GPUs; places %v", memory, none, wide, places)
	}
}
