//go:build cuda && linux && cgo && amd64

package cuda

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/nvml"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/fixtures"
)

// onGPU skips the test unless a GPU is requested.
func onGPU(t *testing.T) {
	t.Helper()
	if os.Getenv("DEVMAP_TEST_GPU") == "" {
		t.Skip("DEVMAP_TEST_GPU is not set")
	}
}

// described are the GPUs that the driver shows.
func described(t *testing.T) []driver.Device {
	t.Helper()
	if err := driver.Open(); err != nil {
		t.Fatal(err)
	}
	gpus, err := driver.Devices()
	if err != nil || len(gpus) == 0 {
		t.Fatal(gpus, err)
	}
	return gpus
}

// spread assigns devices to all GPUs round-robin, so that neighbours are on two GPUs if there are
// two.
func spread(t *testing.T, devices int) []int {
	t.Helper()
	count := len(described(t))
	on := make([]int, devices)
	for i := range on {
		on[i] = i % count
	}
	return on
}

// placements are ways to assign devices to GPUs: all to the first and, if there are more, to all of
// them round-robin.
func placements(t *testing.T, devices int) [][]int {
	t.Helper()
	together, apart := make([]int, devices), spread(t, devices)
	if slices.Equal(together, apart) {
		return [][]int{together}
	}
	return [][]int{together, apart}
}

// gauge tells what NVML says that the GPUs hold that the driver shows, all together,
// and by how much that grew.
type gauge struct {
	gpus []nvml.GPU
	last int64
}

var once sync.Once

func newGauge(t *testing.T) *gauge {
	t.Helper()
	gpus := described(t)
	once.Do(func() { // of a first context some megabytes stay until the process ends
		for i := range gpus {
			context, err := gpus[i].Retain()
			if err == nil {
				err = context.Release()
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	library := fixtures.Must(nvml.Open())(t)
	t.Cleanup(func() {
		if err := library.Close(); err != nil {
			t.Error(err)
		}
	})
	all := fixtures.Must(library.GPUs())(t)
	gauge := new(gauge)
	for i := range all {
		if slices.ContainsFunc(gpus, func(gpu driver.Device) bool { return gpu.UUID == all[i].UUID }) {
			gauge.gpus = append(gauge.gpus, all[i])
		}
	}
	if len(gauge.gpus) != len(gpus) {
		t.Fatalf("NVML shows %d of the driver's %d GPUs", len(gauge.gpus), len(gpus))
	}
	version, err := library.Driver()
	t.Logf("%s, %d GPUs, driver %s: %v", all[0].Name, len(gpus), version, err)
	gauge.tell(t, "at the start")
	return gauge
}

// used is what the GPUs hold, all together.
func (gauge *gauge) used(t *testing.T) (bytes int64) {
	t.Helper()
	for i := range gauge.gpus {
		memory := fixtures.Must(gauge.gpus[i].Memory())(t)
		bytes += memory.Used
	}
	return bytes
}

func (gauge *gauge) tell(t *testing.T, when string) int64 {
	t.Helper()
	now := gauge.used(t)
	t.Logf("used %12d  %+12d  %s", now, now-gauge.last, when)
	gauge.last = now
	return now
}

// settled waits until the GPU's used memory is as before, which takes the driver a moment. cuBLASLt
// keeps a context from an earlier test of the process. Its streams and modules remain: some
// megabytes.
func (gauge *gauge) settled(t *testing.T, want int64) {
	t.Helper()
	const context, retained = 256 << 20, 16 << 20 // retained: on each GPU
	for begin := time.Now(); ; {
		now := gauge.used(t)
		if now == want || want >= context && now > want && now <= want+retained*int64(len(gauge.gpus)) {
			t.Logf("used as before, and %d bytes, %v later", now-want, time.Since(begin))
			return
		}
		if time.Since(begin) > 2*time.Second {
			t.Errorf("%d bytes are used, %d were", now, want)
			return
		}
	}
}

// TestGPUUsage: how much GPU memory each part of the runtime takes, and that it is released.
func TestGPUUsage(t *testing.T) {
	onGPU(t)
	gauge := newGauge(t)
	done := make(chan struct{})
	var start int64
	go func() { // the thread that a context is bound to
		defer close(done)
		context := bound0(t)
		if context == nil {
			return
		}
		gauge.tell(t, "a first context")
		if err := context.Release(); err != nil {
			t.Error(err)
		}
		start = gauge.tell(t, "given back: what stays is the process's, whatever it runs")
		context = bound0(t)
		if context == nil {
			return
		}
		gauge.tell(t, "a context")
		kernels := kernel.New(false, 0)
		var events []*driver.Event
		for range 20000 {
			event, err := driver.NewEvent(true)
			if err != nil {
				t.Error(err)
				return
			}
			events = append(events, event)
		}
		stream, err := driver.NewStream()
		if err != nil {
			t.Error(err)
			return
		}
		gauge.tell(t, "20000 timed events and a stream")
		begin := time.Now()
		for _, event := range events {
			err = errors.Join(err, stream.Record(event))
		}
		if err := errors.Join(err, stream.Synchronize()); err != nil {
			t.Error(err)
			return
		}
		t.Logf("an event is recorded in %v", time.Since(begin)/time.Duration(len(events)))
		gauge.tell(t, "all recorded")
		begin = time.Now()
		pinned, err := driver.Pin(256 << 20)
		if err != nil {
			t.Error(err)
			return
		}
		t.Logf("256 MiB were pinned in %v", time.Since(begin))
		gauge.tell(t, "256 MiB pinned")
		total(t, kernels, stream)
		for _, event := range events {
			err = errors.Join(err, event.Destroy())
		}
		if err := errors.Join(err, pinned.Free(), stream.Destroy(), kernels.Unload()); err != nil {
			t.Error(err)
		}
		gauge.tell(t, "all but the context given back")
		if err := context.Release(); err != nil {
			t.Error(err)
		}
	}()
	<-done
	gauge.tell(t, "the context too")
	gauge.settled(t, start)
	if leaked := driver.Unreleased(); leaked != "" {
		t.Errorf("the process still holds %s", leaked)
	}
}

func bound0(t *testing.T) *driver.Context {
	t.Helper()
	if err := driver.Open(); err != nil {
		t.Error(err)
		return nil
	}
	version, err := driver.Version()
	t.Logf("%s, CUDA %d (%v)", driver.Library(), version, err)
	devices, err := driver.Devices()
	if err != nil {
		t.Error(err)
		return nil
	}
	t.Logf("%+v", devices)
	context, err := devices[0].Retain()
	if err == nil {
		err = context.Bind()
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	granule, err := context.Granule()
	free, whole, errFree := driver.FreeMemory()
	t.Logf("granule %d, %d of %d free: %v", granule, free, whole, errors.Join(err, errFree))
	return context
}

// total is what one thread adds up, and the processor.
func total(t *testing.T, kernels *kernel.Kernels, stream *driver.Stream) {
	t.Helper()
	const count = 4001
	pinned, err := driver.Pin(4 * (count + 1))
	if err != nil {
		t.Error(err)
		return
	}
	sum := 0.
	for i := range count {
		value := rand.Float32() * float32(i)
		sum += float64(value)
		binary.LittleEndian.PutUint32(pinned.Data[4*i:], math.Float32bits(value))
	}
	at := pinned.Address()
	if err := errors.Join(kernels.Total(stream, at+4*count, at, count), stream.Synchronize()); err != nil {
		t.Error(err)
	}
	if got := math.Float32frombits(binary.LittleEndian.Uint32(pinned.Data[4*count:])); got != float32(sum) {
		t.Errorf("the sum is %v, want %v", got, float32(sum))
	}
	if err := pinned.Free(); err != nil {
		t.Error(err)
	}
}

// TestGPUSteps: programs of every kind, whose instructions are taps, make the bytes of a
// sequential run, with their devices on each GPU in turn.
func TestGPUSteps(t *testing.T) {
	onGPU(t)
	gauge := newGauge(t)
	start := gauge.last
	for name, job := range forms(t) {
		want := make([][]byte, len(job.Program.Devices))
		for i := range want {
			want[i] = bytes.Repeat([]byte{executor.Poison}, int(job.Program.Devices[i].Arena))
		}
		inTurn(t, job.Program, want)
		inTurn(t, job.Program, want)
		machine := opened(t, made(t, executor.GPUOptions{Devices: spread(t, len(want))}), job.Program)
		gauge.tell(t, fmt.Sprint(name, ": open with ", len(want), " devices of ", job.Program.Devices[0].Arena, " bytes"))
		toyFuncs.Delete(backendOf(machine))
		step := &executor.Step{Number: 1, Taps: make(map[executor.Tap]func() error)}
		for i := range machine.program.Instrs {
			index, instr := int32(i), &machine.program.Instrs[i]
			if !instr.Op.Runs() && instr.Op != program.Step {
				continue
			}
			step.Taps[executor.Tap{Instr: index}] = func() error {
				arena := make([]byte, machine.program.Devices[instr.Device].Arena)
				if err := machine.Read(int(instr.Device), 0, arena); err != nil {
					return err
				}
				makes(machine.program, index, arena)
				for _, access := range machine.program.Accesses[instr.FirstAccess:instr.EndAccess] {
					if buffer := &machine.program.Buffers[access.Buffer]; access.Mode != program.Read {
						if err := machine.Write(int(instr.Device), buffer.Offset, arena[buffer.Offset:buffer.Offset+buffer.Bytes]); err != nil {
							return err
						}
					}
				}
				return nil
			}
		}
		for range 2 {
			times := fixtures.Must(machine.Step(context.Background(), step))(t)
			t.Logf("%s: %d instructions in %v: %+v", name, len(machine.program.Instrs), times.Step, times.Devices[0])
		}
		for i, got := range contents(t, machine) {
			if !bytes.Equal(got, want[i]) {
				t.Errorf("%s: device %d has other bytes", name, i)
			}
		}
		step.Taps = nil
		for range 3 { // without anything to do: what an instruction takes
			times := fixtures.Must(machine.Step(context.Background(), step))(t)
			t.Logf("%s: %d instructions of nothing in %v", name, len(machine.program.Instrs), times.Step)
		}
		if err := machine.Close(); err != nil {
			t.Error(err)
		}
		gauge.settled(t, start)
	}
}

// oneMessage is a program of two devices, and a message of all that they have.
func oneMessage(size int) string {
	return fmt.Sprintf(`
device 0 arena %[1]d budget %[1]d
device 1 arena %[1]d budget %[1]d
channel act[1] 0>1 slots 1 bytes %[1]d
buffer 0 out 0 +%[1]d stream
buffer 1 slot 0 +%[1]d slot
0.0 compute zero >out
0.1 compute send act[1]#0 out
1.0 compute recv act[1]#0 >slot
1.1 compute fence slot
1.2 compute free act[1]#0
`, size)
}

// TestGPUMessages: large messages arrive whole on the other device, and
// tells how fast arenas are poisoned, written, read and copied.
func TestGPUMessages(t *testing.T) {
	onGPU(t)
	gauge := newGauge(t)
	start := gauge.last
	const size = 1 << 30
	begin := time.Now()
	machine := opened(t, made(t, executor.GPUOptions{Devices: spread(t, 2)}), parsed(t, oneMessage(size)))
	t.Logf("opened with two arenas of 1 GiB in %v", time.Since(begin))
	if grown := gauge.last; gauge.tell(t, "open")-grown < 2*size {
		t.Error("the arenas are not there")
	}
	data := make([]byte, size)
	if err := machine.Read(1, 0, data); err != nil {
		t.Fatal(err)
	}
	for at, one := range data {
		if one != executor.Poison {
			t.Fatalf("byte %d is %x", at, one)
		}
	}
	for i := range data {
		data[i] = byte(i ^ i>>9 ^ i>>17)
	}
	rate := func(what string, call func() error) {
		for range 3 {
			begin := time.Now()
			if err := call(); err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %.1f GB/s", what, size/time.Since(begin).Seconds()/1e9)
		}
	}
	rate("written", func() error { return machine.Write(0, 0, data) })
	rate("sent, a step", func() error {
		_, err := machine.Step(context.Background(), &executor.Step{Number: 1})
		return err
	})
	got := make([]byte, size)
	rate("read", func() error { return machine.Read(1, 0, got) })
	if !bytes.Equal(got, data) {
		t.Error("the message arrived with other bytes")
	}
	if err := machine.Close(); err != nil {
		t.Error(err)
	}
	gauge.settled(t, start)
	var memoryErr *executor.MemoryError
	large := fmt.Sprintf("device 0 arena %[1]d budget %[1]d\n", int64(1)<<40)
	if _, err := made(t, executor.GPUOptions{}).Open(context.Background(), &bind.Bound{Program: parsed(t, large)}); !errors.As(err, &memoryErr) {
		t.Errorf("%v", err)
	} else {
		t.Log(err)
	}
	gauge.settled(t, start)
}
