package boundcheck

import (
	"context"
	"errors"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// Refuted is the highest load that a proof refutes for [Check], of its own limit and
// some a little lower: the check has other cells of load than the walks that found the
// prices. What is not above the load known to be refuted is not asked about; it is 0
// where the proof refutes none of them.
func Refuted(ctx context.Context, problem *graph.Problem, proof *Proof, known float64) float64 {
	lower := *proof
	for _, part := range [...]float64{0, 1e-4, 1e-3, 4e-3} {
		if lower.Limit = proof.Limit * (1 - part); lower.Limit <= known {
			break
		}
		switch err := Check(ctx, problem, &lower); {
		case err == nil:
			return lower.Limit
		case errors.Is(err, errTooLong):
			return 0
		default:
		}
	}
	return 0
}
