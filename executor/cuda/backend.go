//go:build cuda && linux && cgo && amd64

package cuda

import (
	"context"
	"errors"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/cuda/internal/transfer"
	"github.com/devmap-dev/devmap/executor/internal/bind"
)

// backend is the configuration of all machines.
type backend struct {
	options executor.GPUOptions
	kernels map[string]kernel.Func
	instr   func(bound *bind.Bound, index int32) (bind.Instr, error)
	shape   func(gpus int) transfer.Shape // of the ring of each of so many GPUs
}

// New returns the GPUs' backend. It does not look for the driver before Open.
func New(options executor.GPUOptions) (executor.Backend, error) {
	if err := options.Check(); err != nil {
		return nil, err
	}
	if options.StallLimit == 0 {
		options.StallLimit = 30 * time.Second
	}
	kernels, err := kernel.Table()
	if err != nil {
		return nil, err
	}
	return &backend{options, kernels, (*bind.Bound).Instr, transfer.ShapeFor}, nil
}

func (*backend) Name() string { return "cuda" }

// Open implements [executor.Backend].
func (backend *backend) Open(ctx context.Context, bound *bind.Bound) (executor.Machine, error) {
	machine := backend.assembled(bound)
	if err := machine.open(ctx, backend); err != nil {
		return nil, errors.Join(err, machine.Close())
	}
	return machine, nil
}

// CheckMemory returns an error if the arenas do not fit into the GPUs' free memory ([executor.CheckMemory]).
func (backend *backend) CheckMemory(ctx context.Context, bound *bind.Bound) error {
	return checkFreeMemory(ctx, newFleet(&backend.options, bound.Program))
}
