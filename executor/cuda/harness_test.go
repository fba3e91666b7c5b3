//go:build cuda && linux && cgo && amd64

package cuda

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/cuda/internal/transfer"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/internal/drivertest"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/fixtures"
)

func TestMain(m *testing.M) {
	if err := os.Setenv("FAKE_CUDA_GPUS", "4"); err != nil {
		panic(err)
	}
	if err := drivertest.Main(m); err != nil {
		panic(err)
	}
}

// compiled is the job of a family, its units in equal runs round the devices.
func compiled(tb testing.TB, family string, wanted costmodel.Workload, devices, runs int) *executor.Job {
	tb.Helper()
	job := fixtures.Must(backendtest.Compiled(family, wanted, devices, runs))(tb)
	return job
}

// parsed is a program that was written by hand, and is sound.
func parsed(tb testing.TB, text string) *program.Program {
	tb.Helper()
	read, err := program.Parse("by hand", []byte(text))
	if err == nil {
		err = read.Check().Err()
	}
	if err != nil {
		tb.Fatal(err)
	}
	return read
}

// toyFunc is the function of a toy kernel, and toyFuncs are those of each backend.
type toyFunc func(call *kernel.Call, step *kernel.Step) error

var toyFuncs sync.Map

// openedBy are the backends that opened machines.
var openedBy sync.Map

func backendOf(machine *machine) any {
	backend, _ := openedBy.Load(machine)
	return backend
}

// assembleAgain has steps give the launches that a test put in the place of others.
func (machine *machine) assembleAgain(tb testing.TB) {
	tb.Helper()
	for i, made := range machine.works.cached {
		if made == nil {
			continue
		}
		bound := fixtures.Must(machine.works.instr(machine.works.bound, int32(i)))(tb)
		made.assemble(&bound)
	}
	machine.captureAgain(tb)
}

// captureAgain makes the graphs of the launches that there are now.
func (machine *machine) captureAgain(tb testing.TB) {
	tb.Helper()
	for _, device := range machine.devices {
		if err := device.do(func() error { return machine.works.graphs.free(device) }); err != nil {
			tb.Fatal(err)
		}
	}
	machine.works.graphs = graphs{}
	if err := machine.works.capture(); err != nil {
		tb.Fatal(err)
	}
}

// made is a backend whose one kernel is a toy: an instruction makes bytes out of
// all bytes that it reads and of what it is: of whatever went another way, other
// bytes come out.
func made(tb testing.TB, options executor.GPUOptions) *backend {
	tb.Helper()
	found := fixtures.Must(New(options))(tb)
	backend, is := found.(*backend)
	if !is {
		tb.Fatalf("%T", found)
	}
	if os.Getenv("DEVMAP_TEST_GPU") == "" { // everything is smaller there
		backend.shape = func(int) transfer.Shape { return transfer.Shape{Parts: 4, Size: 64 << 10, Share: 32 << 10, Behind: 1} }
	}
	backend.kernels = map[string]kernel.Func{"toy": func(call *kernel.Call) (kernel.Launch, error) {
		return func(step *kernel.Step) error {
			does, is := toyFuncs.Load(backend)
			if !is {
				return nil // it is not open yet: the addresses of its arenas are not known
			}
			return does.(toyFunc)(call, step) //nolint:forcetypeassert,errcheck // there is nothing else in it
		}, nil
	}}
	backend.instr = func(_ *bind.Bound, index int32) (bind.Instr, error) {
		toy := recipe.Kernel{Name: "toy", Dims: []recipe.Dim{{Name: "index", Value: strconv.Itoa(int(index))}}}
		return bind.Instr{Runs: []bind.Run{{Kernels: []recipe.Kernel{toy}}}}, nil
	}
	return backend
}

// open is a program on a machine, for the caller to close.
func open(tb testing.TB, backend *backend, of *program.Program) *machine {
	tb.Helper()
	found := fixtures.Must(backend.Open(context.Background(), &bind.Bound{Program: of}))(tb)
	machine, is := found.(*machine)
	if !is {
		tb.Fatalf("%T", found)
	}
	openedBy.Store(machine, backend)
	return machine
}

// opened is a program on a machine whose instructions run the toy. When the test
// ends nothing of it is held.
func opened(tb testing.TB, backend *backend, of *program.Program) *machine {
	tb.Helper()
	machine := open(tb, backend, of)
	toyFuncs.Store(backend, toyFunc(machine.toy))
	if os.Getenv("DEVMAP_TEST_GPU") == "" { // the toy is for the fake driver
		machine.captureAgain(tb)
	}
	tb.Cleanup(func() {
		if err := machine.Close(); err != nil {
			tb.Error(err)
		}
		if leaked := driver.Unreleased(); leaked != "" {
			tb.Errorf("the process still holds %s", leaked)
		}
	})
	return machine
}

const mostOfToy = 64 // stretches that a toy can touch

func (machine *machine) toy(call *kernel.Call, step *kernel.Step) error {
	at, err := strconv.Atoi(call.Kernel.Dims[0].Value)
	if err != nil {
		return err
	}
	function, err := call.Kernels.Entry("toy", func() (string, error) { return "", nil }, "mix")
	if err != nil {
		return err
	}
	instr := &machine.program.Instrs[at]
	accesses := machine.program.Accesses[instr.FirstAccess:instr.EndAccess]
	if len(accesses) > mostOfToy {
		return fmt.Errorf("%d accesses, a toy has %d", len(accesses), mostOfToy)
	}
	one := driver.Shape{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	arguments := new(driver.Arguments).Uint64(seed(instr)).Uint64(uint64(len(accesses)))
	for field := range 3 {
		for i := range mostOfToy {
			var value uint64
			if i < len(accesses) {
				buffer := &machine.program.Buffers[accesses[i].Buffer]
				value = []uint64{uint64(machine.devices[buffer.Device].at(buffer.Offset)), uint64(buffer.Bytes), uint64(accesses[i].Mode)}[field]
			}
			arguments.Uint64(value)
		}
	}
	return step.Queue.(*driver.Stream).Launch(function, one, arguments) //nolint:errcheck // there are no others
}

// seed is what an instruction is, whatever it touches.
func seed(instr *program.Instr) uint64 {
	return uint64(instr.Op)<<48 | uint64(instr.Routine+1)<<24 | uint64(instr.MicroBatch+1)
}

// makes is what an instruction of a toy does to its arena.
func makes(of *program.Program, index int32, arena []byte) {
	hash := uint64(14695981039346656037)
	mix := func(data []byte) {
		for _, one := range data {
			hash = (hash ^ uint64(one)) * 1099511628211
		}
	}
	mix(binary.LittleEndian.AppendUint64(nil, seed(&of.Instrs[index])))
	accesses := of.Accesses[of.Instrs[index].FirstAccess:of.Instrs[index].EndAccess]
	for _, access := range accesses {
		if buffer := &of.Buffers[access.Buffer]; access.Mode != program.Write {
			mix(arena[buffer.Offset : buffer.Offset+buffer.Bytes])
		}
	}
	for _, access := range accesses {
		buffer := &of.Buffers[access.Buffer]
		for at := int64(0); access.Mode != program.Read && at < buffer.Bytes; at += 8 {
			binary.LittleEndian.PutUint64(arena[buffer.Offset+at:], hash+uint64(at))
		}
	}
}
