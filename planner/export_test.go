package planner

import (
	"context"
	"errors"

	"github.com/devmap-dev/devmap/costmodel"
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

// FormBound is a form that all stages may have, and the bound of its value.
type FormBound struct {
	Workload costmodel.Workload
	Below    float64
}

// FormBounds are the bounds of all forms of a problem, by the model without its repeated
// units and by the whole model.
func FormBounds(ctx context.Context, problem Problem) (short, all []FormBound, err error) {
	problem, err = problem.Resolved()
	if err != nil {
		return nil, nil, err
	}
	solver := &solveCall{Problem: &problem}
	model := shortened(problem.Graph)
	if len(model.times) == len(problem.Graph.Units) {
		return nil, nil, errors.New("no unit is left out")
	}
	for _, one := range []struct {
		model *repeats
		to    *[]FormBound
	}{{model, &short}, {allUnits(problem.Graph), &all}} {
		forms, _, err := solver.gridForms(ctx, one.model)
		if err != nil {
			return nil, nil, err
		}
		for i := range forms {
			*one.to = append(*one.to, FormBound{forms[i].workload, forms[i].below})
		}
	}
	return short, all, nil
}
