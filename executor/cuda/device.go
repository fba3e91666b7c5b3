//go:build cuda && linux && cgo && amd64

package cuda

import (
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/blas"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/cuda/internal/transfer"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/internal/schedule"
	"github.com/devmap-dev/devmap/executor/program"
)

// gpu is what the devices on one GPU share.
type gpu struct {
	*driver.Device
	granule int64
	kernels *kernel.Kernels
	ring    *transfer.Ring // by which values come to it
	gauge   *memoryGauge
}

func (gpu *gpu) place() string { return fmt.Sprintf("GPU %d (%s)", gpu.Ordinal, gpu.Name) }

// whole is bytes in whole granules.
func (gpu *gpu) whole(bytes int64) int64 {
	return (bytes + gpu.granule - 1) / gpu.granule * gpu.granule
}

// device is a device of the program: an arena on a GPU, and what its own thread makes
// there. Its fields are the thread's own once it runs.
type device struct {
	plan    *program.Device
	gpu     *gpu
	allots  *allotment
	lanes   *schedule.Device // the thread, with a stream for each of the program's
	context *driver.Context
	arena   *driver.Arena
	closed  bool // no other GPU gets access to the arena
	kernels *kernel.Kernels
	// workspace is the buffer that libraries have in the arena.
	workspace blas.Workspace
	words     words
	clock     clock
	host      *driver.Stream // what the host reads and writes goes by it
	end       *transfer.End
	saved     savedCopy
}

func newDevice(plan *program.Device, gpu *gpu, allots *allotment) *device {
	device := &device{plan: plan, gpu: gpu, allots: allots}
	device.lanes = schedule.NewDevice(plan, calls{device})
	return device
}

// do has the device's thread call something.
func (device *device) do(call func() error) error { return device.lanes.Do(call) }

// stream is one of the program's.
func (device *device) stream(number int) *driver.Stream {
	return device.lanes.Queue(number).(*driver.Stream) //nolint:forcetypeassert // there are no others
}

// prepare binds the thread to the GPU's context, which is its own from then on.
func (device *device) prepare() (err error) {
	if device.context, err = device.gpu.Retain(); err != nil {
		return err
	}
	if err := device.context.Bind(); err != nil {
		return err
	}
	if device.gpu.kernels == nil {
		if device.gpu.granule, err = device.gpu.Granule(); err != nil {
			return err
		}
		version, err := driver.Version()
		if err != nil {
			return err
		}
		device.gpu.kernels = kernel.New(device.gpu.Capability == 90 && version >= 12000)
	}
	device.kernels = device.gpu.kernels.ForThread()
	if err := device.lanes.Open(); err != nil {
		return err
	}
	if device.host, err = driver.NewStream(); err != nil {
		return err
	}
	device.end = &transfer.End{ // the arena as an end of its GPU's ring
		Name: device.lanes.String(), Ring: device.gpu.ring, Context: device.context, Stream: device.host, SumStream: device.stream(0),
	}
	return nil
}

// reserve maps the arena and poisons every byte of it.
func (device *device) reserve(peers []*driver.Device) (err error) {
	if device.plan.Arena == 0 {
		return nil
	}
	if device.arena, err = device.gpu.Map(device.gpu.whole(device.plan.Arena), peers...); err != nil {
		return err
	}
	device.end.Arena = device.arena.Address
	return device.whitewash(executor.Poison)
}

// open maps the arena for the GPUs that send into it. Where one gets no access it is the
// GPU's own, and closed, unless messages are to go from memory to memory alone.
func (device *device) open(peers []*driver.Device, transport executor.Transport) error {
	err := device.do(func() error { return device.reserve(peers) })
	if denied := (*driver.AccessError)(nil); transport != executor.PeerTransport && errors.As(err, &denied) {
		device.closed = true
		return device.do(func() error { return device.reserve(nil) })
	}
	return err
}

// at is the address of a byte of the arena.
func (device *device) at(offset int64) driver.Address {
	return device.arena.Address + driver.Address(offset)
}

func (device *device) matrix(area bind.Area) kernel.Matrix {
	return kernel.Matrix{Address: device.at(area.Offset), DType: area.DType, Rows: area.Rows, Columns: area.Columns, Stride: area.Stride}
}

// fill waits where a step's own streams do not wait for the host's: they begin when
// that has ended.
func (device *device) fill(offset, size int64, value byte) error {
	if err := device.host.Fill(device.at(offset), value, size); err != nil || !device.lanes.Stepping() {
		return err
	}
	return device.host.Synchronize()
}

// whitewash sets every byte of the arena, behind all that it was given before.
func (device *device) whitewash(value byte) error {
	if err := device.host.Fill(device.arena.Address, value, device.arena.Bytes); err != nil {
		return err
	}
	return device.host.Synchronize()
}

// close gives everything back but what the GPU's devices share.
func (device *device) close() error {
	all := []error{device.end.Close(), device.saved.pinned.Free(), device.kernels.Close(), device.words.free(), device.clock.close(), device.lanes.Close()}
	if device.host != nil {
		all = append(all, device.host.Destroy())
	}
	if device.arena != nil {
		all = append(all, device.arena.Release())
	}
	return errors.Join(all...)
}
