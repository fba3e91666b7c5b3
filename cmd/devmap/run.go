package main

import (
	"bytes"
	"io"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda"
	"github.com/devmap-dev/devmap/executor/report"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

type runCommand struct {
	*ask.Request

	reference executor.Backend
	gpus      []cuda.GPU // that plans run on; none: the reference runs
	without   error      // why none do, where that was not asked for
}

func newRun(reference executor.Backend) *cobra.Command {
	command := &runCommand{reference: reference}
	cmd := &cobra.Command{
		Use:   "run PLAN…",
		Short: "Run a plan with real arithmetic: measured beside predicted",
		Long: `Run a plan as devmap's own engine does: the model is read again, its plan is
compiled, every GPU of it is given memory of its own on this machine, and the
program runs. What was measured is set beside what the plan predicts, and judged.
A plan for another runtime keeps its cut and is predicted again for devmap.

It runs on NVIDIA GPUs where devmap was built for them (go build -tags cuda) and
a driver is there, else on the reference on this machine's processor: that is
slow, and its bytes are judged, never its times. Weights come from the model's
folder, or are drawn (--weights random); token ids come from --tokens or are
drawn. In training the labels are the same ids, and there is no dropout.

Several plans run one after another. Exit status 4: a verdict is fail; 3: the
arenas find no room.`,
		Example: `  devmap run plan.json
  devmap run plan.json --weights random --steps 10 --lr 3e-4 --clip 1
  devmap run plan.json --tokens text.jsonl --steps 100 --save trained
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
	if err := command.Refuse(); err != nil {
		return err
	}
	if err := command.choose(); err != nil {
		return err
	}
	runs, err := command.prepare(cmd, files)
	if err != nil {
		return err
	}
	if err := command.sayReference(cmd); err != nil {
		return err
	}
	var reports bytes.Buffer
	failed := false
	for i := range runs {
		one := &runs[i]
		measured, err := one.carryOut(cmd)
		if err != nil {
			return err
		}
		failed = failed || measured.Verdict == report.Fail
		if err := command.show(cmd, one, measured, &reports); err != nil {
			return err
		}
	}
	if command.Output != "" {
		if err := out.Write(cmd, command.Output, func(to io.Writer) error { _, err := to.Write(reports.Bytes()); return err }); err != nil {
			return err
		}
	}
	if failed {
		return out.ErrCheck
	}
	return nil
}

// carryOut runs a plan.
func (one *planRun) carryOut(cmd *cobra.Command) (*report.Report, error) {
	watch, done := out.Watch(cmd.ErrOrStderr(), "reserving memory")
	one.watch(watch)
	result, err := executor.Run(cmd.Context(), one.backend, &one.job.Job, &one.settings)
	done()
	if err != nil {
		return nil, one.told(err)
	}
	return report.Of(&report.Foretold{
		Plan: one.file, Devices: one.job.devices, GPUs: one.job.gpus, Imbalance: one.job.imbalance, StepSeconds: one.job.seconds,
	}, &one.job.Job, result), nil
}

// show prints a report, which is the result unless the document is: that of
// --json, and of -o, for which all are gathered.
func (command *runCommand) show(cmd *cobra.Command, one *planRun, measured *report.Report, reports *bytes.Buffer) error {
	people := cmd.OutOrStdout()
	if command.JSON || command.Output != "" {
		document := cmd.OutOrStdout()
		if command.Output != "" {
			document = reports
		}
		if err := devicemap.WriteJSON(document, measured); err != nil {
			return err
		}
		people = cmd.ErrOrStderr()
	}
	if command.JSON {
		return nil
	}
	show.New(people, one.job.Graph, *one.job.Workload).Run(one.job.placed, measured, command.where(one))
	return nil
}
