package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/executor/cuda"
)

// choose finds what is to run: GPUs where they are asked for, or where nothing is
// and this build has a backend of GPUs. A flag that only means something on GPUs
// asks for them.
func (command *runCommand) choose() (onGPUs bool, err error) {
	if _, err := command.Run.Devices(); err != nil {
		return false, err
	}
	if _, err := command.Run.FaultAsked(); err != nil {
		return false, err
	}
	if flag := command.GPUFlags(); command.Run.Backend == ask.CPU && flag != "" {
		return false, out.Usagef("%s --backend %s: it is for GPUs (--backend %s)", flag, ask.CPU, ask.CUDA)
	}
	if command.Run.Backend == ask.CPU || command.self.Link == nil && command.self.Args == nil {
		return false, nil
	}
	if _, err := cuda.New(cuda.Options{}); err != nil {
		return false, command.missing(err)
	}
	return true, nil
}

// missing lets the reference run in the place of GPUs, of which something is
// missing, where nobody asked for them.
func (command *runCommand) missing(err error) error {
	flag := command.GPUFlags()
	switch {
	case command.Run.Backend == ask.CUDA:
		return fmt.Errorf("--backend %s: %w", ask.CUDA, err)
	case flag != "":
		return fmt.Errorf("%s: %w", flag, err)
	}
	command.without = err
	return nil
}

// sayReference tells why the reference runs where that was not asked for.
func (command *runCommand) sayReference(cmd *cobra.Command) error {
	switch {
	case command.without == nil:
		return nil
	case errors.Is(command.without, cuda.ErrNotBuilt):
		return out.Say(cmd.ErrOrStderr(), "no backend of GPUs is built: the CPU reference runs\n")
	}
	return out.Say(cmd.ErrOrStderr(), "%s: the CPU reference runs\n", strings.ReplaceAll(command.without.Error(), "\n", "; "))
}

// where says on what GPUs a plan runs; empty: on the reference.
func (command *runCommand) where(one *planRun) string {
	var names []string
	for _, gpu := range slices.Compact(slices.Sorted(slices.Values(one.gpus))) {
		names = append(names, fmt.Sprintf("GPU %d (%s)", gpu, command.gpus[gpu].Name))
	}
	text := strings.Join(names, ", ")
	if devices := len(one.job.devices); text != "" && len(names) != devices {
		text += " in place of " + show.Plural(devices, "GPU")
	}
	return text
}
