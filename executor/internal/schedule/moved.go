package schedule

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/internal/hostmemory"
	"github.com/devmap-dev/devmap/executor/program"
)

// checkHost returns an error if the host has too little memory for what devices leave to it.
func (of *Scheduler) checkHost(limits []hostmemory.FreeMemory) error {
	var need int64
	for i := range of.Program.Devices {
		need = min(need+of.Program.HostBytes(i), 1<<62)
	}
	if tightest := hostmemory.Tightest(limits, hostmemory.FreeMemory{Free: need}); tightest.Free < need {
		return fmt.Errorf("offloaded activations take %v of the host's memory, and %s has %v free: %v too little; offload fewer blocks, or recompute them",
			costmodel.Bytes(need), tightest.Place, costmodel.Bytes(max(tightest.Free, 0)), costmodel.Bytes(need-max(tightest.Free, 0)))
	}
	return nil
}

// pin allocates the host memory of a device's buffers, on the device's thread.
func (of *Scheduler) pin(number int) (err error) {
	device := of.Devices[number]
	if bytes := of.Program.HostBytes(number); bytes > 0 && device.hosted == nil {
		if device.hosted, err = device.Driver.Pin(bytes); err != nil {
			return fmt.Errorf("%v: %v of pinned memory for offloaded activations: %w", device, costmodel.Bytes(bytes), err)
		}
	}
	return nil
}

// move copies the buffers of a store to host memory, or those of a fetch from there. They follow each
// other there.
func (lane *lane) move(instr *program.Instr) error {
	accesses := lane.Program.Accesses[instr.FirstAccess:instr.EndAccess]
	var at int64
	for _, access := range accesses {
		if buffer := &lane.Program.Buffers[access.Buffer]; buffer.Class == program.Host {
			at = buffer.Offset
		}
	}
	for _, access := range accesses {
		buffer := &lane.Program.Buffers[access.Buffer]
		if buffer.Class == program.Host {
			continue
		}
		host, address := lane.device.hosted.Bytes()[at:at+buffer.Bytes], lane.device.Driver.Address(buffer.Offset)
		call := func() error { return lane.queue.Down(host, address) }
		if instr.Op == program.Fetch {
			call = func() error { return lane.queue.Up(address, host) }
		}
		if err := call(); err != nil {
			return err
		}
		at += buffer.Bytes
	}
	return nil
}
