package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

type planCommand struct {
	*ask.Request
	began time.Time // reading the model
	end   time.Time // of the search
}

func newPlan() *cobra.Command {
	command := &planCommand{}
	cmd := &cobra.Command{
		Use:   "plan MODEL --gpus N",
		Short: "Find the balanced placement, with its proof",
		Long: `Find the placement whose largest share of a GPU's budget is smallest, and among
those the most even one; with --objective time the one with the shortest
predicted step that fits; with --objective front all those between the two, as
a table and one JSON document (devmap.front/v1). The plan goes to stdout as
JSON (-o writes a file), a table to stderr. --strategy auto plans the fastest
strategy that fits (devmap estimate shows all). Exit status 3: nothing fits;
what would is printed.

` + ask.Precisions,
		Example: `  devmap plan model.json --gpus 4
  devmap plan ./Qwen2.5-3B --gpus 4 --gpu h200-141gb --mode train --batch 4 -o plan.json`,
		ValidArgsFunction: ask.CompleteModel,
		Args:              out.Exactly(1, "one MODEL, as in: devmap plan MODEL --gpus 4"),
		RunE:              func(cmd *cobra.Command, args []string) error { return command.run(cmd, args[0]) },
	}
	command.Request = ask.New(cmd)
	command.Probe = probing(cmd)
	cmd.Flags().Lookup("steps").DefValue = "0" // the pipeline's own, not one run
	return cmd
}

func (command *planCommand) run(cmd *cobra.Command, arg string) error {
	command.began = time.Now()
	if err := command.Refuse(); err != nil {
		return err
	}
	if err := out.Spare(command.Output, arg, arg, command.TopologyFile()); err != nil {
		return err
	}
	if folder := pipelineFolder(arg); folder != "" {
		asked, err := command.Pipeline(arg, folder)
		if err != nil {
			return err
		}
		return command.plan(cmd, asked, nil)
	}
	if err := command.OfModel(arg); err != nil {
		return err
	}
	if read, data := command.benchmarkFile(arg); read != nil {
		return command.solveBenchmark(cmd, arg, read, data)
	}
	asked, err := command.Problem(arg)
	if err != nil {
		return err
	}
	defer command.begin(cmd)()
	notes := command.DeviceNotes(asked.Topology)
	if asked.Workload.Strategy.Traits().Open {
		half, cancel := context.WithTimeout(cmd.Context(), command.TimeLimit/2)
		row, why, err := command.choose(half, asked)
		cancel()
		if err != nil {
			return err
		}
		asked.Workload, notes = row.Workload, append(notes, why)
	}
	if asked.Problem, err = asked.Resolved(); err != nil {
		return err
	}
	workload := &asked.Costs.Workload
	notes = append(notes, command.IdleNotes(workload)...)
	asked.Workload.Runtime, asked.Workload.Schedule = workload.Runtime, workload.Schedule
	if command.IsFront() {
		return command.front(cmd, asked, notes)
	}
	return command.plan(cmd, asked, notes)
}

// pipelineFolder is the folder of a diffusion pipeline that MODEL names; empty
// where it names something else.
func pipelineFolder(arg string) string {
	folder := load.Place(arg, load.Options{})
	if info, err := os.Stat(filepath.Join(folder, "model_index.json")); folder != "" && err == nil && !info.IsDir() {
		return folder
	}
	return ""
}

// plan solves a problem and shows its answer. The phases of a pipeline that does
// not fit are shown too: they say what is too large.
func (command *planCommand) plan(cmd *cobra.Command, asked *ask.Question, notes []string) error {
	sol, err := command.solve(cmd.Context(), cmd.ErrOrStderr(), asked)
	if sol == nil || err != nil && asked.Diffusion == nil {
		command.showNotes(cmd, asked, err)
		return err
	}
	return cmp.Or(command.show(cmd, asked, sol, notes), err)
}

// showNotes prints what is assumed of the model and its costs with an answer
// that does not fit: an assumption may be why.
func (command *planCommand) showNotes(cmd *cobra.Command, asked *ask.Question, err error) {
	var none *out.Infeasible
	if !errors.As(err, &none) || asked.Graph == nil || asked.Costs == nil || command.JSON {
		return
	}
	printer := show.New(cmd.ErrOrStderr(), asked.Graph, asked.Costs.Workload)
	printer.Warnings(append(command.IdleNotes(&asked.Costs.Workload), allWarnings(asked.Graph, asked.Costs.Warnings)...))
}

// afterwards is what remarks and remedies may take once the limit is reached.
const afterwards = 100 * time.Millisecond

// begin starts the clock of --time-limit, which limits every search: for the
// strategy, the map, and what would help. Reading the model counts.
func (command *planCommand) begin(cmd *cobra.Command) (end func()) {
	command.end = command.began.Add(command.TimeLimit)
	ctx, cancel := context.WithDeadline(cmd.Context(), command.end.Add(afterwards))
	cmd.SetContext(ctx)
	return cancel
}

// left is the time left to the search for a map.
func (command *planCommand) left() time.Duration {
	return max(time.Until(command.end), time.Nanosecond)
}

func (command *planCommand) solve(ctx context.Context, stderr io.Writer, asked *ask.Question) (*planner.Solution, error) {
	s := planner.Settings{TimeLimit: command.left()}
	done := func() {}
	if !command.JSON {
		s.Progress, done = out.Progress(stderr)
	}
	sol, err := planner.Solve(ctx, asked.Problem, s)
	done()
	if err != nil && sol == nil && asked.Diffusion != nil {
		err = out.Usagef("%s: %w", asked.Source, err)
	}
	return sol, withHelps(ctx, err, asked)
}

// withHelps adds what would help to an answer that does not fit.
func withHelps(ctx context.Context, err error, asked *ask.Question) error {
	var inf *planner.InfeasibleError
	var offload *planner.OffloadError
	if errors.As(err, &inf) || errors.As(err, &offload) && offload.TooLittle {
		return &out.Infeasible{Err: err, Helps: show.Changes(asked.Smallest(ctx))}
	}
	return err
}

func (command *planCommand) show(cmd *cobra.Command, asked *ask.Question, sol *planner.Solution, notes []string) error {
	plan := planOf(asked, sol, notes)
	plan.Warnings = append(plan.Warnings, show.Advice(cmd.Context(), asked, sol)...)
	// The plan first: on a terminal the table then stands last, in sight.
	if err := out.Write(cmd, command.Output, func(writer io.Writer) error { return devicemap.WriteJSON(writer, plan) }); err != nil {
		return err
	}
	if asked.Diffusion != nil {
		if !command.JSON {
			show.Pipeline(cmd.ErrOrStderr(), asked.Diffusion.Pipeline, sol, plan)
		}
		return nil
	}
	printer := show.New(cmd.ErrOrStderr(), asked.Graph, asked.Costs.Workload)
	if !command.JSON {
		printer.Devices(sol.Map, sol.Devices)
		printer.Forms(plan.Stages)
		printer.Certificate(sol, plan.Imbalance)
		printer.Offloaded(sol)
	}
	if command.Explain {
		printer.Explain(cmd.Context(), asked, sol)
	}
	if !command.JSON {
		printer.Warnings(plan.Warnings)
	}
	return nil
}

// planOf is the plan file of a solution, with its warnings in the words of flags.
func planOf(asked *ask.Question, sol *planner.Solution, notes []string) *devicemap.Plan {
	plan := sol.File(&asked.Problem)
	var read []string
	if asked.Diffusion != nil {
		plan.Model.Source = asked.Source
	} else {
		read = asked.Graph.Warnings
	}
	plan.Warnings = slices.Concat([]string{}, read, notes, ask.Texts(sol.Warnings))
	return plan
}

func allWarnings(graph *modelgraph.Graph, more []costmodel.Message) []string {
	return slices.Concat([]string{}, graph.Warnings, ask.Texts(more))
}
