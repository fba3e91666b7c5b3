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

// backendChoice is what runs plans: GPUs or the reference.
type backendChoice struct {
	*ask.Request

	self    worker.Self
	without error // why GPUs do not run plans, if that was not asked for
}

// choose finds what is to run: GPUs where they are asked for, or where nothing is
// and this build has a backend of GPUs. A flag that only means something on GPUs
// asks for them.
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

// missing lets the reference run in the place of GPUs that lack something, unless
// the user asked for GPUs.
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

// sayReference tells why the reference runs where that was not asked for.
func (choice *backendChoice) sayReference(cmd *cobra.Command) error {
	switch {
	case choice.without == nil:
		return nil
	case errors.Is(choice.without, executor.ErrNotBuilt):
		return out.Note(cmd, "note: this build has no CUDA support; running the CPU reference\n")
	}
	return out.Note(cmd, "note: running the CPU reference: %s\n", strings.ReplaceAll(choice.without.Error(), "\n", "; "))
}
