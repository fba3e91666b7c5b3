package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/phases"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

type planCommand struct {
	*ask.Request
	began  time.Time // reading the model
	end    time.Time // of the search
	folder string    // of --emit
}

func newPlan() *cobra.Command {
	command := &planCommand{}
	cmd := &cobra.Command{
		Use:   "plan MODEL --gpus N",
		Short: "Find the split with the lowest peak memory, with its proof",
		Long: `Find the split of a model across GPUs with the lowest peak memory.

MODEL is a folder, a config.json, a .safetensors file, a model.json or a name.
GGUF files are for llama.cpp.
The plan is JSON; a table goes to standard error. A terminal gets the table
alone.
If nothing fits, devmap exits with status 3 and lists changes that fit.`,
		Example: `  devmap plan ./Qwen2.5-3B --gpus 4 --gpu h200-141gb --mode train --batch 4 -o plan.json
  devmap plan llama-3.1-8b --gpus 24GiB,24GiB,48GiB --seq 8192
  devmap plan llama-3.1-8b --gpus 8 --mode train --strategy fsdp`,
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
	serves := ask.Serves(command.Request, load.IsGGUF(arg))
	if !serves {
		if err := cmp.Or(ask.IdleServing(command.Request), command.Refuse(), ask.RefuseGGUF(command.Request, arg)); err != nil {
			return err
		}
	}
	if err := command.spare(cmd, arg); err != nil {
		return err
	}
	if serves {
		return command.serve(cmd, arg)
	}
	if folder, builtIn := pipelineFolder(arg); folder != "" {
		return command.pipeline(cmd, arg, folder, builtIn)
	}
	if err := command.OfModel(arg); err != nil {
		return err
	}
	if read, data := command.benchmarkFile(cmd, arg); read != nil {
		return command.solveBenchmark(cmd, arg, read, data)
	}
	asked, err := command.Problem(arg)
	if err != nil {
		return err
	}
	defer command.begin(cmd)()
	notes := append(ask.DefaultNotes(cmd), command.DeviceNotes(asked.Topology)...)
	if asked.Workload.Strategy.Traits().Open {
		half, cancel := context.WithTimeout(cmd.Context(), command.TimeLimit/2)
		row, why, err := command.choose(half, asked)
		cancel()
		if err != nil {
			show.Warnings(cmd.ErrOrStderr(), command.unchanged(err))
			return err
		}
		asked.Workload, notes = row.Workload, append(notes, why)
	}
	if asked.Problem, err = asked.Resolved(); err != nil {
		return err
	}
	workload := &asked.Costs.Workload
	notes = slices.Concat(notes, ask.HardwareNotes(asked.Topology, workload), command.IdleNotes(workload))
	asked.Workload.Runtime, asked.Workload.Schedule = workload.Runtime, workload.Schedule
	if command.IsFront() {
		return command.front(cmd, asked, notes)
	}
	return command.plan(cmd, asked, notes)
}

// pipeline plans a diffusion pipeline.
func (command *planCommand) pipeline(cmd *cobra.Command, arg, folder string, builtIn fs.FS) error {
	asked, err := command.Pipeline(arg, folder, builtIn)
	if err != nil {
		return err
	}
	notes := append(ask.DefaultNotes(cmd), command.DeviceNotes(asked.Topology)...)
	if training := asked.Diffusion.Workload.Train; training != nil {
		notes = append(notes, command.IdleNotes(training)...)
	}
	if builtIn != nil && arg != folder {
		notes = append(notes, fmt.Sprintf("%s is in no local cache: the built-in configs of %s are used", arg, folder))
	}
	return command.plan(cmd, asked, notes)
}

// spare refuses an output that is an input. It makes the plan's file one of the folder
// of --emit.
func (command *planCommand) spare(cmd *cobra.Command, arg string) error {
	kind := "plan"
	if command.IsFront() {
		kind = "front"
	}
	if err := spareReport(cmd, command.Report, arg, command.Output); err != nil {
		return err
	}
	switch {
	case command.Emit == "":
		return out.Spare(cmd, out.Written{Flag: "output", Path: command.Output, Kinds: []string{kind}}, arg)
	case command.Output == "" || command.JSON:
		return out.Usagef("--emit %s writes a folder: name it with -o FOLDER, without --json", command.Emit)
	}
	command.folder, command.Output = command.Output, filepath.Join(command.Output, "plan.json")
	return out.Spare(cmd, out.Written{Flag: "output", Path: command.Output, Kinds: []string{kind}}, arg)
}

// pipelineFolder is the folder of a diffusion pipeline that MODEL names, and the
// built-in configs if it is one of theirs; empty where MODEL names something else.
func pipelineFolder(arg string) (folder string, builtIn fs.FS) {
	folder, builtIn = load.Place(arg, load.Options{BuiltIn: fixtures.Models()})
	in, index := builtIn, path.Join(folder, "model_index.json")
	if builtIn == nil {
		in, index = os.DirFS(folder), "model_index.json"
	}
	if info, err := fs.Stat(in, index); folder == "" || err != nil || info.IsDir() {
		return "", nil
	}
	return folder, builtIn
}

// plan solves a problem and shows its answer. The phases of a pipeline that does
// not fit are shown too: they say what is too large.
func (command *planCommand) plan(cmd *cobra.Command, asked *ask.Question, notes []string) error {
	sol, err := command.solve(cmd.Context(), cmd.ErrOrStderr(), asked)
	if sol == nil || err != nil && asked.Diffusion == nil {
		command.showRefused(cmd, asked, notes, err)
		return cmp.Or(command.reportUnfit(cmd, asked, err, notes), err)
	}
	if costs := asked.Costs; costs != nil && sol.Costs != nil && (costs.Workload.Schedule == costmodel.AutoSchedule || costs.Workload.Runtime == costmodel.Devmap) {
		asked.Costs = sol.Costs // with what was chosen
	}
	return cmp.Or(command.show(cmd, asked, sol, notes), err)
}

// showRefused prints a plan's notes with a refusal: the problem, and assumptions on the
// model and its costs, which may be why. --json silences the first.
func (command *planCommand) showRefused(cmd *cobra.Command, asked *ask.Question, notes []string, err error) {
	var none *out.Infeasible
	if !errors.As(err, &none) || asked.Graph == nil || asked.Costs == nil {
		return
	}
	printer := command.printer(cmd, asked)
	if !command.JSON {
		printer.Header(asked.Topology, ask.Defaults(command.Request, asked.Graph, &asked.Costs.Workload))
	}
	printer.Warnings(slices.Concat(allWarnings(asked.Graph, asked.Costs.Warnings), notes, command.unchanged(err)))
}

// unchanged warns of an earlier result in the file of a plan that does not fit.
func (command *planCommand) unchanged(err error) []string {
	if none := (*out.Infeasible)(nil); !errors.As(err, &none) || !isFile(command.Output) {
		return nil
	}
	return []string{fmt.Sprintf("%q is unchanged: it has the result of an earlier run", command.Output)}
}

// printer prints to stderr what people read.
func (command *planCommand) printer(cmd *cobra.Command, asked *ask.Question) *show.Printer {
	printer := show.New(cmd.ErrOrStderr(), asked.Graph, asked.Costs.Workload)
	printer.Implied = command.Implied
	return printer
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
		return infeasible(ctx, err, asked)
	}
	return err
}

// infeasible adds the smallest changes that fit to an error.
func infeasible(ctx context.Context, err error, asked *ask.Question) *out.Infeasible {
	changes := asked.Smallest(ctx)
	none := &out.Infeasible{Err: err, Helps: show.Changes(changes), Remedies: ask.Remedies(changes)}
	if len(none.Helps) == 0 {
		none.Helps = []string{asked.NoChange(ctx)}
	}
	for i := range none.Remedies {
		none.Remedies[i].Text = none.Helps[i]
	}
	return none
}

func (command *planCommand) show(cmd *cobra.Command, asked *ask.Question, sol *planner.Solution, notes []string) error {
	asked = chosen(asked, sol)
	plan := planOf(asked, sol, notes)
	plan.Warnings = append(plan.Warnings, show.Advice(cmd.Context(), asked, sol)...)
	note, err := command.job(cmd, plan)
	if err != nil {
		return err
	}
	written, err := command.write(cmd, func(writer io.Writer) error { return devicemap.WriteJSON(writer, plan) })
	if err == nil {
		err = note()
	}
	if err == nil {
		err = command.report(cmd, plan, asked, sol, nil)
	}
	if err != nil {
		return err
	}
	if asked.Diffusion != nil {
		if !command.JSON {
			show.Pipeline(cmd.ErrOrStderr(), asked.Diffusion.Pipeline, sol, plan, func(work *phases.Workload) []string { return ask.DiffusionDefaults(command.Request, work) })
			show.Warnings(cmd.ErrOrStderr(), plan.Warnings)
			command.next(cmd, plan, written)
		}
		return nil
	}
	printer := command.printer(cmd, asked)
	if !command.JSON {
		printer.Header(sol.Topology, ask.Defaults(command.Request, asked.Graph, &asked.Costs.Workload))
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
		command.next(cmd, plan, written)
	}
	return nil
}

// chosen is the question with the degrees that all stages got, where these were open.
func chosen(asked *ask.Question, sol *planner.Solution) *ask.Question {
	if asked.Diffusion != nil || sol.Costs == nil || len(sol.Costs.Stages) > 0 || !openDegrees(&asked.Costs.Workload) {
		return asked
	}
	with, is := *asked, &sol.Costs.Workload
	with.Costs = sol.Costs
	// A change names what differs from this workload, so it names none of the chosen degrees.
	with.Workload.DP, with.Workload.TP, with.Workload.CP, with.Workload.EP, with.Workload.PP = is.DP, is.TP, is.CP, is.EP, is.PP
	with.Workload.Batch, with.Workload.MicroBatches = is.Batch, is.MicroBatches
	if with.Workload.Recompute == recomputeAuto {
		with.Workload.Recompute = is.Recompute
	}
	return &with
}

// job writes the job of --emit. note prints what it wrote, once the plan is there, too.
func (command *planCommand) job(cmd *cobra.Command, plan *devicemap.Plan) (note func() error, err error) {
	if command.folder == "" {
		return func() error { return nil }, nil
	}
	target, err := jobTarget(plan)
	if err != nil {
		return nil, err
	}
	input, err := inputOf(cmd, target, plan, command.Output, "")
	if err != nil {
		return nil, err
	}
	other := map[string][]string{"slurm": {"trainjob.yaml", "jobset.yaml"}, "kubernetes": {"job.sbatch"}}[command.Emit]
	return writeFolder(cmd, target, input, command.folder, command.Force, func(name string) bool {
		return !slices.Contains(other, name) || isFile(filepath.Join(command.folder, name)) // none is another job's
	})
}

// write writes a plan or another document before any table, which then stands last,
// in sight. A terminal gets the table alone.
func (command *planCommand) write(cmd *cobra.Command, write func(io.Writer) error) (written bool, err error) {
	return !out.TableOnly(cmd, command.Output, command.JSON), out.Document(cmd, command.Output, command.JSON, write)
}

// isFile reports that a plan was written to a file, which can be read again.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return path != "" && err == nil && info.Mode().IsRegular()
}

// next says what can be done with the plan.
func (command *planCommand) next(cmd *cobra.Command, plan *devicemap.Plan, written bool) {
	var text string
	switch {
	case !written:
		text = "The plan was not saved: -o plan.json saves it."
	case isFile(command.Output) && plan.Verdict != "no":
		text = "Next: " + nextCommand(plan, command.Output)
	default:
		return
	}
	out.Note(cmd, "%s\n", text) //nolint:errcheck // nothing to do about a closed stderr
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
	plan.Warnings = slices.Concat([]string{}, read, notes, ask.Texts(sol.Warnings), plan.Warnings, jobNotes(plan))
	return plan
}

func allWarnings(graph *modelgraph.Graph, more []costmodel.Message) []string {
	return slices.Concat([]string{}, graph.Warnings, ask.Texts(more))
}
