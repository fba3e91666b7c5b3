package planner

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/stagedegrees"
)

// Tests of all methods use these.
var (
	Methods = methods
	Certify = certify
)

// SolveDegrees chooses among all forms of stages until the context ends.
func SolveDegrees(ctx context.Context, problem *Problem) (*Solution, error) {
	in, err := problem.resolve()
	if err != nil {
		return nil, err
	}
	forms, err := stageForms(context.WithoutCancel(ctx), problem)
	if err != nil {
		return nil, err
	}
	method := stagedegrees.Method{Forms: forms}
	answer, err := method.Solve(ctx, in, instance.Limits{}, nil)
	if err != nil {
		return nil, err
	}
	return certify(in, answer, method)
}
