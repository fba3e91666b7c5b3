package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/serve"
)

// serve plans for an engine that serves.
func (command *planCommand) serve(cmd *cobra.Command, arg string) error {
	workload, topology, err := ask.ServingOf(command.Request)
	if err != nil {
		return err
	}
	served, err := readServed(arg, workload, topology)
	if err != nil {
		return err
	}
	answer, err := serve.Solve(served.question)
	if err != nil {
		return unserved(command.Request, served, err)
	}
	plan := servingPlan(served.graph, served.workload, topology, &served.question, answer)
	written, err := command.write(cmd, func(writer io.Writer) error { return devicemap.WriteJSON(writer, plan) })
	if err != nil || command.JSON {
		return err
	}
	printer := show.New(cmd.ErrOrStderr(), served.graph, plan.Workload)
	printer.Header(topology, nil)
	printer.Devices(answer.Placed(served.graph), plan.Devices)
	show.Served(printer, &served.question, answer)
	printer.Warnings(plan.Warnings)
	command.next(cmd, plan, written)
	return nil
}

// servingPlan is the plan file of an answer.
func servingPlan(graph *modelgraph.Graph, workload costmodel.Workload, topology *costmodel.Topology, question *serve.Question, answer *serve.Answer) *devicemap.Plan {
	workload.Context, workload.HostExperts, workload.InTurn = answer.Set.Context, answer.Set.HostExperts, answer.InTurn
	plan := devicemap.NewServingPlan(graph, &workload, topology, answer.Placed(graph), answer.Predictions(question, topology))
	objective := &plan.Objective
	objective.Name, objective.Value, objective.LowerBound = "memory", answer.Share, answer.Bound
	objective.Gap = (answer.Share - answer.Bound) / answer.Share
	objective.Status, objective.Bound = "optimal", "every split of this context in order"
	plan.Warnings = append(plan.Warnings, answer.Notes(question)...)
	return plan
}

// unserved adds what would fit to an answer that nothing fits.
func unserved(request *ask.Request, served *served, err error) error {
	var none *serve.InfeasibleError
	if !errors.As(err, &none) {
		return err
	}
	helps, remedies := ask.ServingChanges(request, served.topology, served.question.Changes())
	if len(helps) == 0 {
		helps = []string{fmt.Sprintf("no change of these settings fits: a GPU needs %v at least", costmodel.Bytes(none.Needs+served.question.Devices[0].Overhead(1)))}
	}
	return &out.Infeasible{Err: err, Helps: helps, Remedies: remedies}
}
