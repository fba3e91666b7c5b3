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
	"github.com/devmap-dev/devmap/costmodel/serving"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/gguf"
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
		return command.ranked(cmd, arg, workload, topology)
	}
	served, err := readServed(arg, workload, topology)
	if err != nil {
		return err
	}
	answer, err := serve.Solve(served.question)
	if err != nil {
		return unreported(cmd, command.Report, unserved(command.Request, served, err))
	}
	plan := servingPlan(served.graph, served.workload, topology, &served.question, answer)
	written, err := command.write(cmd, func(writer io.Writer) error { return devicemap.WriteJSON(writer, plan) })
	if err == nil {
		err = command.reportServed(cmd, plan, served.graph, show.ServedFacts(served.graph, plan.Workload, &served.question, answer))
	}
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

// unreported notes that an engine that serves has no page if nothing fits: there is no map to show.
func unreported(cmd *cobra.Command, report string, err error) error {
	if none := (*out.Infeasible)(nil); report != "" && errors.As(err, &none) {
		if fault := out.Note(cmd, "note: %q was not written: nothing fits, so there is no plan to show\n", report); fault != nil {
			return fault
		}
	}
	return err
}

// servingPlan is the plan file of an answer.
func servingPlan(graph *modelgraph.Graph, workload costmodel.Workload, topology *costmodel.Topology, question *serve.Question, answer *serve.Answer) *devicemap.Plan {
	workload.Context, workload.HostExperts, workload.InTurn = answer.Set.Context, answer.Set.HostExperts, answer.InTurn
	plan := devicemap.NewServingPlan(graph, &workload, topology, answer.Placed(graph), answer.Predictions(question, topology))
	proved(plan, answer.Share, answer.Bound, "every split of this context in order")
	plan.Warnings = append(plan.Warnings, answer.Notes(question)...)
	return plan
}

// proved sets the objective of a plan whose largest share of a budget has a bound.
func proved(plan *devicemap.Plan, share, bound float64, argument string) {
	objective := &plan.Objective
	objective.Name, objective.Value, objective.LowerBound = "memory", share, bound
	objective.Gap = (share - bound) / share
	objective.Status, objective.Bound = "optimal", argument
}

// unserved adds what would fit to an answer that nothing fits.
func unserved(request *ask.Request, served *served, err error) error {
	var none *serve.InfeasibleError
	if !errors.As(err, &none) {
		return err
	}
	helps, remedies := ask.ServingChanges(request, served.topology, served.question.Changes())
	if len(helps) == 0 {
		least := none.Needs
		if none.Device < 0 {
			least += served.question.Devices[0].Overhead(1)
		}
		helps = []string{fmt.Sprintf("no change of these settings fits: a GPU needs %v at least", costmodel.Bytes(least))}
	}
	return &out.Infeasible{Err: err, Helps: helps, Remedies: remedies}
}

// readGGUF reads a model of llama.cpp.
func readGGUF(arg string) (*modelgraph.Graph, *serving.Model, error) {
	file, err := ggufFile("--runtime "+costmodel.LlamaCPP, arg)
	if err != nil {
		return nil, nil, err
	}
	graph, err := file.Graph()
	if err != nil {
		return nil, nil, err
	}
	graph.Source = file.Path // of a folder
	model, err := serving.FromGGUF(file)
	return graph, model, err
}

// ggufFile reads a GGUF file for a flag.
func ggufFile(flag, place string) (*gguf.File, error) {
	file, err := load.GGUF(place)
	if errors.Is(err, load.ErrUnsupported) {
		return nil, out.Usagef("%s: %s is no GGUF file: convert it with convert_hf_to_gguf.py of llama.cpp", flag, place)
	}
	return file, err
}
