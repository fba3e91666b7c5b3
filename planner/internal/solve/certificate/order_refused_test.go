package certificate

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/orders"
)

// A solution that is wrong in one place is refused, with the reason.
func TestRefusedOrders(t *testing.T) {
	problem := orders.Problem{MicroBatches: 2, Caps: []int64{2, 1}, Chunks: []orders.Chunk{
		{GPU: 0, Forward: 2, Input: 2, Weight: 1, ToWeight: 1, Send: 1, Back: 1},
		{GPU: 1, Forward: 2, Input: 2, Weight: 1, ToWeight: 1},
	}}
	right, err := orders.Solve(t.Context(), problem, orders.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckOrder(&problem, right); err != nil {
		t.Fatal(err)
	}
	// swapped exchanges two passes of a row.
	swapped := func(gpu, one, other int) func(*orders.Problem, *orders.Solution) {
		return func(_ *orders.Problem, solution *orders.Solution) {
			row := solution.Order[gpu]
			row[one], row[other] = row[other], row[one]
		}
	}
	for want, change := range map[string]func(*orders.Problem, *orders.Solution){
		"the longest way through it is":    func(_ *orders.Problem, solution *orders.Solution) { solution.Length-- },
		"row 0 uses 2 bytes of 1":          func(problem *orders.Problem, _ *orders.Solution) { problem.Caps[0] = 1 },
		"an order of 12 passes has 11":     func(_ *orders.Problem, solution *orders.Solution) { solution.Order[0] = solution.Order[0][1:] },
		"passes of an order wait for each": swapped(1, 0, 1),
		"row 1 has {0 0} of micro-batch 0": func(_ *orders.Problem, solution *orders.Solution) { solution.Order[1][0].Chunk = 0 },
		"row 1 has {0 1} of micro-batch 2": func(_ *orders.Problem, solution *orders.Solution) {
			solution.Order[1] = slices.Repeat(solution.Order[1][:1], 6)
		},
		"within a cap), and the arguments": func(_ *orders.Problem, solution *orders.Solution) {
			solution.Value, solution.Why = solution.Length, "micro-batches within a cap"
		},
		"a complete search found nothing": func(_ *orders.Problem, solution *orders.Solution) {
			solution.Value, solution.Why = solution.Length-1, orders.BySearch
		},
	} {
		tight, wrong := problem, *right
		tight.Caps, wrong.Order = slices.Clone(problem.Caps), slices.Clone(right.Order)
		for gpu := range wrong.Order {
			wrong.Order[gpu] = slices.Clone(right.Order[gpu])
		}
		change(&tight, &wrong)
		var fault *FaultError
		if err := CheckOrder(&tight, &wrong); !errors.As(err, &fault) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
