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

// device is a device of the program: an arena on a GPU, and a thread that makes
// every call for it. Its fields are the thread's own once it runs.
type device struct {
	plan    *program.Device
	gpu     *gpu
	context *driver.Context
	arena   *driver.Arena
	closed  bool             // no other GPU gets access to the arena
	streams []*driver.Stream // of the program
	parked  []*driver.Event  // by stream: where the host is waited for, and where a step ends
	kernels *kernel.Kernels
	// workspace is the buffer that libraries have in the arena.
	workspace blas.Workspace
	words     words
	clock     clock
	host      *driver.Stream // what the host reads and writes goes by it
	end       *transfer.End
	kept      keptCopy

	stepping bool
	tasks    chan func()
	wake     chan struct{}
}

func newDevice(plan *program.Device, gpu *gpu) *device {
	return &device{plan: plan, gpu: gpu, tasks: make(chan func()), wake: make(chan struct{}, 1)}
}

// do has the device's thread call something.
func (device *device) do(call func() error) error {
	done := make(chan error, 1)
	device.tasks <- func() { done <- call() }
	return device.lost(<-done)
}

// lost is an error by which the device's context is no more as one that says so, any
// other as it is.
func (device *device) lost(err error) error {
	var told *driver.Error
	if before := (*LostError)(nil); errors.As(err, &before) || !errors.As(err, &told) || !told.Dead() {
		return err
	}
	return &LostError{GPUs: []string{device.gpu.place()}, Err: err}
}

// start begins the thread, which owns the context from then on.
func (device *device) start() error {
	go func() {
		for task := range device.tasks {
			task()
		}
	}()
	return device.do(device.prepare)
}

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
	device.kernels = device.gpu.kernels.Beside()
	for range max(1, len(device.plan.Streams)) { // of a plan without steps it is what loading looks at bytes on
		stream, err := driver.NewStream()
		if err != nil {
			return err
		}
		device.streams = append(device.streams, stream)
		event, err := driver.NewEvent(false)
		if err != nil {
			return err
		}
		device.parked = append(device.parked, event)
	}
	if device.host, err = driver.NewStream(); err != nil {
		return err
	}
	device.end = device.newEnd()
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
	if err := device.host.Fill(device.arena.Address, executor.Poison, device.arena.Bytes); err != nil {
		return err
	}
	return device.host.Synchronize()
}

// open maps the arena for the GPUs that send into it. Where one gets no access it is the
// GPU's own, and closed, unless messages are to go from memory to memory alone.
func (device *device) open(peers []*driver.Device, transport Transport) error {
	err := device.do(func() error { return device.reserve(peers) })
	if denied := (*driver.AccessError)(nil); transport != Peer && errors.As(err, &denied) {
		device.closed = true
		return device.do(func() error { return device.reserve(nil) })
	}
	return err
}

// at is the address of a byte of the arena.
func (device *device) at(offset int64) driver.Address {
	return device.arena.Address + driver.Address(offset)
}

// close gives everything back but what the GPU's devices share.
func (device *device) close() error {
	all := []error{device.end.Close(), device.kept.pinned.Free(), device.kernels.Close(), device.words.free(), device.clock.close()}
	for _, stream := range device.streams {
		all = append(all, stream.Destroy())
	}
	for _, event := range device.parked {
		all = append(all, event.Destroy())
	}
	if device.host != nil {
		all = append(all, device.host.Destroy())
	}
	if device.arena != nil {
		all = append(all, device.arena.Release())
	}
	return errors.Join(all...)
}

func (device *device) matrix(area bind.Area) kernel.Matrix {
	return kernel.Matrix{Address: device.at(area.Offset), DType: area.DType, Rows: area.Rows, Columns: area.Columns, Stride: area.Stride}
}

// newEnd is the device's arena as an end of its GPU's ring.
func (device *device) newEnd() *transfer.End {
	return &transfer.End{
		Name: fmt.Sprintf("device %d on %s", device.plan.ID, device.gpu.place()),
		Ring: device.gpu.ring, Context: device.context, Stream: device.host, Beside: device.streams[0],
	}
}

// fill waits where a step's own streams do not wait for the host's: they begin when
// that has ended.
func (device *device) fill(offset, size int64, value byte) error {
	if err := device.host.Fill(device.at(offset), value, size); err != nil || !device.stepping {
		return err
	}
	return device.host.Synchronize()
}
