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
	ring    *transfer.Ring // uploads values to the GPU
	gauge   *memoryGauge
}

func (gpu *gpu) place() string { return fmt.Sprintf("GPU %d (%s)", gpu.Ordinal, gpu.Name) }

// whole is bytes in whole granules.
func (gpu *gpu) whole(bytes int64) int64 {
	return (bytes + gpu.granule - 1) / gpu.granule * gpu.granule
}

// device is a device of the program: an arena on a GPU, and what its thread makes there. Once the
// thread runs, only it uses the fields.
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
	// said are the ids that the last decode writes to the host. It also writes them at saidFrom.
	said     []byte
	saidFrom driver.Address
	clock    clock
	host     *driver.Stream // for reads and writes of the host
	end      *transfer.End
	saved    savedCopy
}

func newDevice(plan *program.Device, gpu *gpu, allots *allotment) *device {
	device := &device{plan: plan, gpu: gpu, allots: allots}
	device.lanes = schedule.NewDevice(plan, calls{device})
	return device
}

// do calls a function on the device's thread.
func (device *device) do(call func() error) error { return device.lanes.Do(call) }

// stream returns the queue of a program's stream.
func (device *device) stream(number int) *driver.Stream {
	return device.lanes.Queue(number).(*driver.Stream) //nolint:errcheck // there are no others
}

// prepare binds the device's thread to the GPU's context and opens its streams.
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
		device.gpu.kernels = kernel.New(kernel.Hopper(device.gpu.Capability, version), device.gpu.Processors)
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

// open maps the arena for the GPUs that send into it. If one gets no access, only the arena's own
// GPU does, and the arena is closed. With executor.PeerTransport that is an error.
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

// fill sets bytes of the arena. During a step it waits for its end; a step that begins later waits
// for the host's stream itself.
func (device *device) fill(offset, size int64, value byte) error {
	if err := device.host.Fill(device.at(offset), value, size); err != nil || !device.lanes.Stepping() {
		return err
	}
	return device.host.Synchronize()
}

// whitewash sets every byte of the arena, after everything that was queued before, and waits.
func (device *device) whitewash(value byte) error {
	if err := device.host.Fill(device.arena.Address, value, device.arena.Bytes); err != nil {
		return err
	}
	return device.host.Synchronize()
}

// close releases everything except what the GPU's devices share.
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
