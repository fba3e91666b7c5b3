package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/weights"
)

// told is an error of a run as the command ends with it.
func (one *planRun) told(err error) error {
	var room *executor.RoomError
	var other *weights.MismatchError
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("running %s: interrupted: no file was written", one.file)
	case errors.As(err, &room):
		return &out.Infeasible{Err: fmt.Errorf("running %s: %w", one.file, err), Helps: []string{one.arenas(), "--weights and other files are not in it: they are read piece by piece"}}
	case errors.Is(err, weights.ErrOccupied), errors.Is(err, weights.ErrNoConfig):
		return out.Usagef("running %s: %w", one.file, err)
	case errors.As(err, &other) && other.Field != "digest" && other.Field != "scalars":
		return out.Usagef("--resume: %w", err)
	}
	return fmt.Errorf("running %s: %w", one.file, err)
}

// arenas is the arithmetic of what a run reserves.
func (one *planRun) arenas() string {
	var parts []string
	var sum int64
	for i := range one.job.Program.Devices {
		device := &one.job.Program.Devices[i]
		parts = append(parts, fmt.Sprintf("GPU %d %v", device.ID, costmodel.Bytes(device.Arena)))
		sum += device.Arena
	}
	return fmt.Sprintf("arenas: %s: %v together", strings.Join(parts, " + "), costmodel.Bytes(sum))
}
