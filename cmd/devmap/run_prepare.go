package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/backends"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/worker"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/report"
	"github.com/devmap-dev/devmap/executor/weights"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// planRun is a plan to run.
type planRun struct {
	file     string
	plan     *devicemap.Plan
	job      *compiled
	settings executor.Settings
	session  executor.Session
	gpus     []int          // by device of the program; empty: the CPU reference runs
	names    []executor.GPU // by number
	link     *worker.Link   // nil if this is no worker
	kill     ask.Fault      // the fault that kills the worker
	// Numbers of pieces loaded and steps done, in all turns.
	pieces, steps int64
	sleeps, wakes *int64         // of all plans
	verdict       report.Verdict // of its first turn
}

// prepare reads and compiles all plans, and checks the flags against each. So an error in one plan
// leaves no other half done, and no input is overwritten.
func (command *runCommand) prepare(cmd *cobra.Command, files []string) ([]planRun, error) {
	settings, err := (runInputs{command.Request}).settings()
	if err != nil {
		return nil, err
	}
	runs := make([]planRun, len(files))
	for i, file := range files {
		plan, err := out.Interruptible(cmd.Context(), 0, file, func() (*devicemap.Plan, error) { return devicemap.ReadPlan(file) })
		if err != nil {
			return nil, err
		}
		if err := command.Contradicted(plan); err != nil {
			return nil, err
		}
		runs[i] = planRun{file: file, plan: plan, settings: settings, link: command.self.Link, sleeps: &command.sleeps, wakes: &command.wakes}
	}
	if err := (runOutputs{command.Request}).spare(cmd, runs); err != nil {
		return nil, err
	}
	for i := range runs {
		if err := command.compile(cmd, &runs[i]); err != nil {
			return nil, errors.Join(err, closeAll(runs[:i]))
		}
	}
	return runs, nil
}

// closeAll closes the files of runs that do not start.
func closeAll(runs []planRun) error {
	var errs []error
	for i := range runs {
		if source := runs[i].settings.Weights; source != nil {
			errs = append(errs, source.Close())
		}
	}
	return errors.Join(errs...)
}

// runInputs are the inputs of a run other than its plans, by flag.
type runInputs struct{ *ask.Request }

// settings returns the settings of all plans, from the flags.
func (inputs runInputs) settings() (executor.Settings, error) {
	asked := &inputs.Run
	settings := executor.Settings{Steps: asked.Steps, Seed: uint64(asked.Seed), Resume: asked.Resume}
	var err error
	if settings.Stop, err = inputs.Run.Stops(); err != nil {
		return settings, err
	}
	dumps, err := inputs.Run.Dumps()
	if err != nil {
		return settings, err
	}
	settings.Dump.Logits, settings.Dump.Hidden, settings.Dump.Grads = dumps["logits"], dumps["hidden"], dumps["grads"]
	settings.Save.Model, settings.Save.State = asked.Save, asked.SaveState
	settings.Optimizer = executor.Optimizer{Rate: asked.Rate, Epsilon: asked.Epsilon, Decay: asked.Decay, Clip: asked.Clip}
	settings.Optimizer.Beta1, settings.Optimizer.Beta2, err = inputs.Run.Betas()
	if err == nil && asked.Resume != "" {
		settings.Seed, err = inputs.resumed(settings.Seed)
	}
	return settings, err
}

// resumed returns the seed of a run that continues another: the other's, unless --seed is given.
func (inputs runInputs) resumed(seed uint64) (uint64, error) {
	if inputs.Given("weights") {
		return 0, out.Usagef("--weights %s --resume: what is resumed has its weights: leave --weights out", inputs.Run.Weights)
	}
	state, err := weights.ReadState(inputs.Run.Resume)
	if err != nil {
		return 0, fmt.Errorf("--resume: %w", err)
	}
	if state.Tokens != "" && inputs.Run.Tokens == "" {
		return 0, out.Usagef("--resume %q: its token ids were a file's: name it again with --tokens", inputs.Run.Resume)
	}
	if inputs.Given("seed") {
		return seed, nil
	}
	return state.Seed, nil
}

// compile makes the job of a plan, and checks the settings against it.
func (command *runCommand) compile(cmd *cobra.Command, one *planRun) error {
	var err error
	if one.job, err = programOf(cmd, one.plan, one.file, command.Model, ""); err != nil {
		return err
	}
	if err := command.assign(one); err != nil {
		return err
	}
	work := one.job.Workload
	show.Warnings(cmd.ErrOrStderr(), append(append(ask.Texts(one.job.Recipe.Warnings), command.IdleNotes(work)...), append(command.gpus.elsewhere(one), one.job.shared...)...))
	if work.Mode != costmodel.Train {
		one.settings.Optimizer = executor.Optimizer{}
	}
	if work.Mode == costmodel.Load {
		one.settings.Steps = 0
	}
	if one.settings.Tokens, err = (runInputs{command.Request}).tokens(cmd, one); err != nil {
		return err
	}
	if err := (runInputs{command.Request}).weights(one); err != nil {
		return err
	}
	if err := one.settings.Check(&one.job.Job); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", one.file, err), closeAll([]planRun{*one}))
	}
	return nil
}

// tokens reads the ids of --tokens, in sequences of the plan's length.
func (inputs runInputs) tokens(cmd *cobra.Command, one *planRun) (*executor.Tokens, error) {
	name := inputs.Run.Tokens
	switch {
	case name == "":
		return nil, nil //nolint:nilnil // drawn
	case one.job.Workload.Mode == costmodel.Load:
		return nil, out.Usagef("--tokens %q: %s is a plan of --mode load, which feeds no token ids", name, one.file)
	}
	tokens, err := out.Interruptible(cmd.Context(), 0, name, func() (*executor.Tokens, error) {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close() //nolint:errcheck // opened for reading
		return executor.ReadTokens(name, file, &one.job.Job)
	})
	var fault *modelgraph.SyntaxError
	if errors.As(err, &fault) {
		return nil, out.Usagef("--tokens: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("--tokens: %w", err)
	}
	return tokens, nil
}

// weights opens the source of the parameters.
func (inputs runInputs) weights(one *planRun) (err error) {
	switch {
	case one.settings.Resume != "":
		return nil
	case inputs.Run.Weights == ask.Random:
		one.settings.Weights = weights.Random(one.job.Graph, one.settings.Seed)
		return nil
	}
	one.settings.Weights, err = weights.Checkpoint(one.job.Graph)
	if errors.Is(err, weights.ErrNone) {
		return out.Usagef("%s: %w: pass --model DIR or --weights %s", one.file, err, ask.Random)
	}
	return err
}

// backendChoice chooses the backend of plans: GPUs or the CPU reference.
type backendChoice struct {
	*ask.Request

	self    worker.Self
	without error // why GPUs do not run plans, if the user did not ask for that
}

// choose selects GPUs if the user asked for them, or if nothing is set and this build has a backend
// of GPUs. A flag that applies only to GPUs asks for them.
func (choice *backendChoice) choose() (onGPUs bool, err error) {
	if _, err := choice.Run.Devices(); err != nil {
		return false, err
	}
	if _, err := choice.Run.FaultAsked(); err != nil {
		return false, err
	}
	if flag := choice.GPUFlags(); choice.Run.Backend == ask.CPU && flag != "" {
		return false, out.Usagef("%s --backend %s: it is for GPUs (--backend %s)", flag, ask.CPU, ask.CUDA)
	}
	if choice.Run.Backend == ask.CPU || choice.self.Link == nil && choice.self.Args == nil {
		return false, nil
	}
	if err := backends.Built(); err != nil {
		return false, choice.missing(err)
	}
	return true, nil
}

// missing selects the CPU reference if GPUs lack something, unless the user asked for GPUs.
func (choice *backendChoice) missing(err error) error {
	flag := choice.GPUFlags()
	switch {
	case choice.Run.Backend == ask.CUDA:
		return fmt.Errorf("--backend %s: %w", ask.CUDA, err)
	case flag != "":
		return fmt.Errorf("%s: %w", flag, err)
	}
	choice.without = err
	return nil
}

// sayReference says why the CPU reference runs, if the user did not ask for it.
func (choice *backendChoice) sayReference(cmd *cobra.Command) error {
	switch {
	case choice.without == nil:
		return nil
	case errors.Is(choice.without, executor.ErrNotBuilt):
		return out.Note(cmd, "note: this build has no CUDA support; running the CPU reference\n")
	}
	return out.Note(cmd, "note: running the CPU reference: %s\n", strings.ReplaceAll(choice.without.Error(), "\n", "; "))
}
