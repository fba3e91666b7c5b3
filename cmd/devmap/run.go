package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/page"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/worker"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/report"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

type runCommand struct {
	*ask.Request

	self      worker.Self
	reference executor.Backend
	gpus      visibleGPUs // of the plans; empty: the CPU reference runs
	observer  gpuObserver

	sleeps, wakes int64 // of all plans so far

	measured map[string]*report.Report // by plan: the last report, for --report
}

func newRun(self worker.Self, reference executor.Backend) *cobra.Command {
	command := &runCommand{self: self, reference: reference}
	cmd := &cobra.Command{
		Use:   "run PLAN…",
		Short: "Execute a plan; compare measured and predicted memory",
		Long: `Execute a plan with devmap's own engine, and compare its memory with the plan.

devmap reads the model again, compiles the plan, reserves the memory of each GPU
on this machine and runs the program. It re-estimates a plan for another engine
with the same split.

It runs on NVIDIA GPUs if this build has CUDA support (make cuda) and there is a
driver. Otherwise a slow reference runs on the CPU: its memory is compared, its
times are not. Weights come from the model's folder or are random (--weights
random). Token ids come from --tokens or are random. In training the labels are
the token ids, and there is no dropout.

On GPUs a worker process does the work. If it fails or is killed, devmap writes
a report, exits with status 1 and says whether the GPU memory was released.

Several plans run one after another. With --cycles N they alternate: A B A B.
--certify runs 5 cycles or more and verifies that all GPU memory is released. It
measures after each unload, at the end of each cycle, and after the process
ended. If another process changed the memory in use, the result is inconclusive.

Exit status 4: a verdict is fail, or the certificate is not a pass. 3: the GPUs
do not have enough free memory.

Kinds of --fault, each followed by :N:

` + ask.FaultHelp(),
		Example: `  devmap run plan.json
  devmap run plan.json --weights random --steps 10 --lr 3e-4 --clip 1
  devmap run plan.json --tokens text.jsonl --steps 100 --save trained
  devmap run plan.json --devices 0,0,1,1 --transport host
  devmap run encoder.json denoiser.json --certify --cycles 20
  devmap run plan.json --dump logits=logits.safetensors --json -o report.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return nil
			}
			return out.Usagef("%s takes one PLAN or more; none given (devmap help %s)", cmd.CommandPath(), cmd.Name())
		},
		RunE: command.run,
	}
	command.Request = ask.New(cmd)
	return cmd
}

func (command *runCommand) run(cmd *cobra.Command, files []string) error {
	if err := cmp.Or(command.Refuse(), command.certified(), command.checkKeep()); err != nil {
		return err
	}
	choice := &backendChoice{Request: command.Request, self: command.self}
	onGPUs, err := choice.choose()
	switch {
	case err != nil:
		return err
	case command.self.Link != nil:
		return command.work(cmd, files)
	case onGPUs:
		if missing, err := command.supervise(cmd); missing == nil {
			return err
		} else if err := choice.missing(missing); err != nil {
			return err
		}
	}
	runs, err := command.prepare(cmd, files)
	if err != nil {
		return err
	}
	if err := choice.sayReference(cmd); err != nil {
		return err
	}
	var reports bytes.Buffer
	failed := command.takeTurns(cmd.Context(), runs, func(turn *turn) (*report.Report, error) {
		measured, err := turn.carryOut(cmd)
		if err != nil {
			return nil, err
		}
		return measured, command.show(cmd, turn, measured, &reports)
	})
	if failed != nil && !errors.Is(failed, out.ErrCheck) {
		return failed
	}
	if err := command.write(cmd, reports.Bytes()); err != nil {
		return err
	}
	return failed
}

// write writes the files of -o and of --report.
func (command *runCommand) write(cmd *cobra.Command, reports []byte) error {
	if command.Output != "" {
		if err := out.Write(cmd, command.Output, func(to io.Writer) error { _, err := to.Write(reports); return err }); err != nil {
			return err
		}
	}
	return command.report(cmd)
}

// keep keeps a plan's last report for the page.
func (command *runCommand) keep(measured *report.Report) {
	if command.measured == nil {
		command.measured = map[string]*report.Report{}
	}
	command.measured[measured.Plan] = measured
}

// carryOut runs a plan's turn.
func (turn *turn) carryOut(cmd *cobra.Command) (*report.Report, error) {
	watch, done := out.Watch(cmd.ErrOrStderr(), "reserving memory")
	turn.watch(watch)
	if turn.link != nil {
		turn.tell(turn.link)
	}
	result, err := turn.session.Turn(cmd.Context(), turn.asked())
	turn.unloaded = time.Now()
	done()
	if err != nil {
		if turn.of > 1 {
			err = fmt.Errorf("turn %d of %d: %w", turn.cycle, turn.of, err)
		}
		failure := turn.commandError(err)
		if turn.link != nil {
			turn.broke(turn.link, err, failure)
		}
		return nil, failure
	}
	return report.Of(turn.prediction(), &turn.job.Job, result), nil
}

// prediction returns the plan's prediction of the turn.
func (turn *turn) prediction() *report.Prediction {
	prediction := &report.Prediction{
		Plan: turn.file, Devices: turn.job.devices, GPUs: turn.job.gpus, Imbalance: turn.job.imbalance, StepSeconds: turn.job.seconds, Topology: turn.job.topology, Woken: turn.woken(),
	}
	if turn.of > 1 {
		prediction.Cycle, prediction.Of = turn.cycle, turn.of
	}
	return prediction
}

// people returns the writer of text for people: stdout unless the document goes there.
func (command *runCommand) people(cmd *cobra.Command) io.Writer {
	if command.JSON || command.Output != "" {
		return cmd.ErrOrStderr()
	}
	return cmd.OutOrStdout()
}

// show prints a report. The document is the result with --json or -o; documents for -o are
// collected.
func (command *runCommand) show(cmd *cobra.Command, turn *turn, measured *report.Report, reports *bytes.Buffer) error {
	command.keep(measured)
	if command.JSON || command.Output != "" {
		if err := devicemap.WriteJSON(command.documents(cmd, reports), measured); err != nil {
			return err
		}
	}
	if !command.JSON {
		command.printed(show.New(command.people(cmd), turn.job.Graph, *turn.job.Workload), turn, measured)
	}
	return nil
}

// documents returns the writer of documents: the collection for -o, else stdout.
func (command *runCommand) documents(cmd *cobra.Command, gathered *bytes.Buffer) io.Writer {
	if command.Output != "" {
		return gathered
	}
	return cmd.OutOrStdout()
}

// report writes the page of --report: of each plan with what its last turn measured.
func (command *runCommand) report(cmd *cobra.Command) error {
	if command.Report == "" {
		return nil
	}
	of := &reportCommand{Request: command.Request}
	var all *page.Page
	for _, file := range cmd.Flags().Args() {
		plan, err := devicemap.ReadPlan(file)
		if err != nil {
			return err
		}
		source, err := writtenPage(plan, command.Model)
		if err != nil {
			return err
		}
		source.Run = command.measured[file]
		one, err := of.made(cmd, source, file)
		if err != nil {
			return err
		}
		all = all.With(one)
	}
	return out.Write(cmd, command.Report, all.Write)
}
