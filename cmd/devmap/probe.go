package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/backends"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/gpuusage"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/probe"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/worker"
)

type probeCommand struct {
	*ask.Request

	self worker.Self
}

func newProbe(self worker.Self) *cobra.Command {
	command := &probeCommand{self: self}
	cmd := &cobra.Command{
		Use:   "probe",
		Short: "Measure this machine's GPUs and write a topology file",
		Long: `Measure this machine's GPUs and write a topology file.

The file has each GPU's memory, what is in use and by whom, and the bandwidth
between GPUs. devmap also runs a small model on each GPU for some steps. A plan
with this topology and --runtime devmap then includes the measured context
memory and speed.

The topology goes to standard output, a table to standard error. A terminal gets
the table alone: -o FILE writes the topology. It takes some seconds.
--devices 0,0,0,0 measures four parts of one GPU, as devmap run with the same
flag uses it.`,
		Example: `  devmap probe -o machine.json
  devmap plan MODEL --topology machine.json --runtime devmap --strategy pipeline
  devmap probe --devices 0,0 -o halves.json`,
		Args: out.Exactly(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return command.run(cmd) },
	}
	command.Request = ask.New(cmd)
	return cmd
}

func (command *probeCommand) run(cmd *cobra.Command) error {
	asked, err := command.Run.Devices()
	if err != nil {
		return err
	}
	if command.self.Link != nil {
		return command.work(cmd, asked)
	}
	// People add rates to a topology, so that none is replaced.
	if err := out.Spare(cmd, out.Written{Flag: "output", Path: command.Output, Kinds: []string{"topology"}}, ""); err != nil {
		return err
	}
	measured, err := measure(cmd, command.self.Args)
	if err != nil {
		return err
	}
	err = out.Document(cmd, command.Output, command.JSON, func(to io.Writer) error { _, err := io.WriteString(to, measured.Document); return err })
	if err != nil || command.JSON {
		return err
	}
	return out.Note(cmd, "%s", out.Block(measured.Text))
}

// probing returns the function that measures for --gpus auto; nil in a build that cannot.
func probing(cmd *cobra.Command) func() ([]byte, error) {
	if err := backends.Built(); err != nil {
		return nil
	}
	return func() ([]byte, error) {
		if err := out.Note(cmd, "measuring the GPUs (devmap probe -o FILE saves the result for --topology FILE)\n"); err != nil {
			return nil, err
		}
		measured, err := measure(cmd, []string{"probe"})
		if err != nil {
			return nil, err
		}
		return []byte(measured.Document), nil
	}
}

// measuring has the messages so far of a worker that measures GPUs.
type measuring struct {
	measured              *worker.Ran
	missing, broke, place string
	status                *int
}

// measure starts a worker that measures GPUs. A failing GPU then ends the worker and not this
// process, which also gets no CUDA context.
func measure(cmd *cobra.Command, args []string) (*worker.Ran, error) {
	process, err := worker.Start(cmd.Context(), args, io.Discard, cmd.ErrOrStderr())
	if err != nil {
		return nil, fmt.Errorf("starting the process that measures GPUs: %w", err)
	}
	said := new(measuring)
	say, done := out.Watch(cmd.ErrOrStderr(), "measuring GPUs, which are woken first")
	readErr := said.hear(process, say)
	done()
	if readErr != nil {
		process.Kill() //nolint:errcheck // it has ended then
	}
	how, err := process.Wait()
	switch {
	case err != nil:
		return nil, err
	case said.missing != "":
		return nil, fmt.Errorf("no GPU can be measured: %s", strings.ReplaceAll(said.missing, "\n", "; "))
	case cmd.Context().Err() != nil:
		return nil, errors.New("interrupted: the GPUs were not measured")
	case readErr != nil:
		return nil, fmt.Errorf("the process that measures GPUs was ended%s: %w", said.place, readErr)
	case said.status == nil:
		return nil, fmt.Errorf("the process that measures GPUs ended: %s%s", how, said.place)
	case said.broke != "":
		return nil, errors.New(said.broke)
	case said.measured == nil:
		return nil, &out.ReportedError{Status: *said.status}
	}
	return said.measured, nil
}

// hear reads the worker's messages until there are no more.
func (said *measuring) hear(process *worker.Process, say func(string)) error {
	for {
		message, err := process.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case message.Missing != "":
			said.missing = message.Missing
		case message.At != "":
			said.place = message.At
			say("measuring GPUs" + said.place)
		case message.Ran != nil:
			said.measured = message.Ran
		case message.Broke != "":
			said.broke = message.Broke
		case message.Done != nil:
			said.status = message.Done
		}
	}
}

// work measures, as a worker.
func (command *probeCommand) work(cmd *cobra.Command, asked []int) error {
	before := probe.Look()
	gpus, err := backends.GPUs()
	if err != nil {
		command.self.Link.Say(&worker.Message{Missing: err.Error()})
		return nil //nolint:nilerr // the supervisor tells it
	}
	if len(asked) == 0 {
		for i := range gpus {
			asked = append(asked, i)
		}
	}
	for _, gpu := range asked {
		if gpu >= len(gpus) {
			return out.Usagef("--devices: GPU %d, and the driver shows %d: %s", gpu, len(gpus), gpuusage.Names(gpus))
		}
	}
	document, text, err := probe.Measure(cmd.Context(), command.self.Link, before, gpus, asked)
	if err != nil {
		return err
	}
	command.self.Link.Say(&worker.Message{Ran: &worker.Ran{Document: document, Text: text}})
	return nil
}
