package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/serve"
)

// serve plans for an engine that serves.
func (command *planCommand) serve(cmd *cobra.Command, arg string) error {
	workload, topology, err := ask.ServingOf(command.Request)
	if err != nil {
		return err
	}
	if workload.Runtime != costmodel.LlamaCPP {
		return command.serveRanks(cmd, arg, &workload, topology)
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

// serveRanks plans for an engine with ranks.
func (command *planCommand) serveRanks(cmd *cobra.Command, arg string, workload *costmodel.Workload, topology *costmodel.Topology) error {
	if load.IsGGUF(arg) {
		return out.Usagef("--runtime %s: %s is a GGUF file: give the model's config.json, or --runtime %s", workload.Runtime, arg, costmodel.LlamaCPP)
	}
	graph, err := ask.ReadModel(arg, ask.ReadingOf(command.Request))
	if err != nil {
		return err
	}
	question, err := serve.RankQuestionOf(graph, workload, topology)
	if err != nil {
		return err
	}
	answer, err := serve.SolveRanks(question)
	var none *serve.InfeasibleRanksError
	switch {
	case errors.As(err, &none):
		return &out.Infeasible{Err: err}
	case err != nil:
		return out.Usagef("%w", err)
	}
	*workload = answer.Workload(*workload)
	plan := devicemap.NewServingPlan(graph, workload, topology, answer.Placed(graph), answer.Predictions(topology))
	plan.Stages = answer.Stages(graph)
	objective := &plan.Objective
	objective.Name, objective.Value, objective.LowerBound = "kv-tokens", answer.Share, answer.Bound
	objective.Gap = (answer.Share - answer.Bound) / answer.Share
	objective.Status, objective.Bound = "optimal", "every split of the layers in order, all degrees"
	plan.Warnings = append(plan.Warnings, answer.Notes(question)...)
	written, err := command.write(cmd, func(writer io.Writer) error { return devicemap.WriteJSON(writer, plan) })
	if err != nil || command.JSON {
		return err
	}
	printer := show.New(cmd.ErrOrStderr(), graph, plan.Workload)
	printer.Header(topology, nil)
	printer.Devices(answer.Placed(graph), plan.Devices)
	show.Ranked(printer, answer)
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
	return &out.Infeasible{Err: err, Helps: helps, Remedies: remedies}
}
