package schedule

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/internal/hostmemory"
	"github.com/devmap-dev/devmap/executor/program"
)

// fewer says how a run needs less host memory.
const fewer = "offload fewer blocks, or recompute them"

// checkHost returns an error if the host has too little memory for what devices leave to it.
func (of *Scheduler) checkHost(limits func() []hostmemory.FreeMemory) error {
	var need int64
	for i := range of.Program.Devices {
		need = min(need+of.Program.HostBytes(i), 1<<62)
	}
	if need == 0 {
		return nil
	}
	if tightest := hostmemory.Tightest(limits(), hostmemory.FreeMemory{Free: need}); tightest.Free < need {
		free := max(tightest.Free, 0)
		return fmt.Errorf("offloaded activations take %v of the host's memory, and %s has %v free: %v too little; %s",
			costmodel.Bytes(need), tightest.Place, costmodel.Bytes(free), costmodel.Bytes(need-free), fewer)
	}
	return nil
}

// pin allocates the host memory of a device's buffers, on the device's thread.
func (of *Scheduler) pin(number int) (err error) {
	device := of.Devices[number]
	if bytes := of.Program.HostBytes(number); bytes > 0 && device.hosted == nil {
		if device.hosted, err = device.Driver.Pin(bytes); err != nil {
			return fmt.Errorf("%v: the host gives no %v of pinned memory for offloaded activations (%s): %w", device, costmodel.Bytes(bytes), fewer, err)
		}
	}
	return nil
}

// move copies the buffers of a store to host memory, or those of a fetch from there. In host memory
// one follows the other.
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
		var err error
		if instr.Op == program.Store {
			err = lane.queue.Down(host, address)
		} else {
			err = lane.queue.Up(address, host)
		}
		if err != nil {
			return err
		}
		at += buffer.Bytes
	}
	return nil
}
