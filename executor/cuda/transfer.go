//go:build cuda && linux && cgo && amd64

package cuda

import (
	"context"
	"errors"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/transfer"
)

// prime makes the ring ready, with what pours into it.
func (machine *machine) prime() error {
	if err := machine.allot("cuMemHostRegister"); err != nil {
		return err
	}
	for _, device := range machine.devices {
		if device.arena == nil {
			continue
		}
		if err := device.do(func() error { return device.end.Prime(device.kernels) }); err != nil {
			return err
		}
	}
	return nil
}

// Pour implements [executor.Pourer].
func (machine *machine) Pour(ctx context.Context, pours []executor.Pour, told func(bytes int64)) error {
	var loads []transfer.Load
	for i := range pours {
		device, err := machine.place(pours[i].Device, pours[i].Offset, pours[i].Values.Bytes)
		if err != nil {
			return err
		}
		loads = append(loads, transfer.Load{End: device.end, Offset: pours[i].Offset, Values: pours[i].Values})
	}
	err := machine.ring.Pour(ctx, loads, machine.backend.options.Patience, told)
	var late *transfer.LateError
	if errors.As(err, &late) {
		machine.left = true
		return &HangError{After: late.After, Stand: "it is at a copy of " + late.Place}
	}
	for _, gpu := range machine.unanswered() {
		err = machine.on(gpu)[0].lost(err)
	}
	return err
}
