package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/backends"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/worker"
	"github.com/devmap-dev/devmap/executor"
)

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
