//go:build cuda && linux && cgo && amd64

package cuda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
)

func unwatched(int64, int64) {}

// asWoken turns the contents of arenas before a sleep into those after the wake.
func asWoken(of *bind.Bound, arenas [][]byte) (saved int64) {
	for device, all := range of.Lasting() {
		at := int64(0)
		poison := func(to int64) { copy(arenas[device][at:to], bytes.Repeat([]byte{executor.Poison}, int(to-at))) }
		for _, lasting := range all {
			poison(lasting.Offset)
			if at = lasting.Offset + lasting.Bytes; lasting.Residency == bind.Empty {
				clear(arenas[device][lasting.Offset:at])
			} else {
				saved += lasting.Bytes
			}
		}
		poison(int64(len(arenas[device])))
	}
	return saved
}

// TestSleep: steps continue after a sleep and a wake as if there had been none, however devices are
// placed on GPUs. State that outlasts a step is at the same addresses, everything else is poison,
// and nothing is prepared again. During the sleep the arenas take no GPU memory.
func TestSleep(t *testing.T) {
	for name, job := range forms(t) {
		for _, gpus := range [][]int{nil, {0, 0, 0, 0}, {1, 0, 1, 0}} {
			if gpus != nil {
				gpus = gpus[:len(job.Program.Devices)]
			}
			t.Run(fmt.Sprint(name, gpus), func(t *testing.T) {
				machine := opened(t, made(t, executor.GPUOptions{Devices: gpus}), job.Program)
				want := contents(t, machine)
				step := func(number int64) {
					t.Helper()
					inTurn(t, job.Program, want)
					if _, err := machine.Step(context.Background(), &executor.Step{Number: number}); err != nil {
						t.Fatal(err)
					}
				}
				step(1)
				address, made := machine.devices[0].arena.Address, machine.works.cached
				var asleep string
				for turn := range int64(3) {
					saved := asWoken(machine.works.bound, want)
					down, err := machine.Sleep(context.Background(), func(copied, of int64) {
						if copied == of && of > 0 && !copiesHold(machine, want) {
							t.Error("copies were said to have ended, and hold other bytes")
						}
					})
					if changes := job.Workload.Mode == costmodel.Train || turn == 0; err != nil || changes && down != saved || !changes && down != 0 {
						t.Fatalf("%d bytes of %d were copied: %v", down, saved, err)
					}
					if used := driver.Unreleased(); turn == 0 {
						asleep = used
					} else if used != asleep {
						t.Errorf("asleep it holds %s, and before %s", used, asleep)
					}
					for _, gpu := range machine.gpus {
						if free := freeOn(t, machine, gpu); free != gpu.Total {
							t.Errorf("%s: %d bytes are still held", gpu.place(), gpu.Total-free)
						}
					}
					if err := machine.Read(0, 0, make([]byte, 8)); !errors.Is(err, errAsleep) {
						t.Errorf("it was read: %v", err)
					}
					if _, err := machine.Step(context.Background(), &executor.Step{}); !errors.Is(err, errAsleep) {
						t.Errorf("it ran a step: %v", err)
					}
					_, up, err := machine.Wake(context.Background(), unwatched)
					if err != nil || up != saved || machine.devices[0].arena.Address != address || len(made) > 0 && &made[0] != &machine.works.cached[0] {
						t.Fatalf("%d bytes of %d came back, to %x in place of %x: %v", up, saved, machine.devices[0].arena.Address, address, err)
					}
					if got := contents(t, machine); !equal(got, want) {
						t.Error("other bytes came back")
					}
					step(turn + 2)
					if got := contents(t, machine); !equal(got, want) {
						t.Error("behind it a step makes other bytes")
					}
				}
				if _, err := machine.Sleep(context.Background(), unwatched); err != nil { // as it is closed
					t.Error(err)
				}
			})
		}
	}
}

// copiesHold reports that the host's copies have what arenas have.
func copiesHold(machine *machine, arenas [][]byte) bool {
	for i, device := range machine.devices {
		if device.arena == nil {
			continue
		}
		err := device.saved.each(func(stretch *bind.Lasting, data []byte) error {
			if !bytes.Equal(data, arenas[i][stretch.Offset:][:stretch.Bytes]) {
				return errors.New("other bytes")
			}
			return nil
		})
		if err != nil {
			return false
		}
	}
	return true
}

func equal(one, other [][]byte) bool {
	for i := range one {
		if !bytes.Equal(one[i], other[i]) {
			return false
		}
	}
	return true
}

// freeOn is the free memory of a GPU.
func freeOn(t *testing.T, machine *machine, of *gpu) (free int64) {
	t.Helper()
	err := machine.on(of)[0].do(func() (err error) {
		free, _, err = driver.FreeMemory()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return free
}

// lastingToy is a program of two devices whose arenas hold something from step to step.
const lastingToy = `
device 0 arena 8388608 budget 8388608
device 1 arena 4194304 budget 4194304
channel act[1] 0>1 slots 1 bytes 512
routine a a
routine b b
buffer 0 weights 0 +2097152 weight
buffer 0 out 4194304 +512 stream
buffer 1 slot 0 +512 slot
buffer 1 held 1048576 +1048576 state
buffer 1 taken 2097152 +512 result
0.0 compute load >weights
0.1 compute forward a mb0 weights >out
0.2 compute send mb0 act[1]#0 out
0.3 compute unload weights
1.0 compute zero >held
1.1 compute recv mb0 act[1]#0 >slot
1.2 compute forward b mb0 slot held >taken
1.3 compute free act[1]#0
1.4 compute unload held
`

// Whatever of a wake finds no memory, none of it is mapped, the ledger says what it said,
// and a later wake finds everything.
func TestWakeRollsBack(t *testing.T) {
	for _, gpus := range [][]int{{0, 0}, {0, 1}} {
		t.Run(fmt.Sprint(gpus), func(t *testing.T) { wakeRollsBack(t, gpus) })
	}
}

func wakeRollsBack(t *testing.T, gpus []int) {
	t.Helper()
	machine := opened(t, made(t, executor.GPUOptions{Devices: gpus}), lasting(t))
	want := contents(t, machine)
	asWoken(machine.works.bound, want)
	if _, err := machine.Sleep(context.Background(), unwatched); err != nil {
		t.Fatal(err)
	}
	asleep := driver.Unreleased()
	at := 1
	for ; ; at++ {
		t.Setenv("FAKE_CUDA_FAIL", strconv.Itoa(at))
		_, _, err := machine.Wake(context.Background(), unwatched)
		if err == nil {
			break
		}
		if !errors.Is(err, executor.ErrMemory) {
			t.Errorf("%d: %v", at, err)
		}
		if used := driver.Unreleased(); used != asleep {
			t.Fatalf("%d: it holds %s, and asleep %s, behind %v", at, used, asleep, err)
		}
		for _, gpu := range machine.gpus {
			if free := freeOn(t, machine, gpu); free != gpu.Total {
				t.Errorf("%d: %s: %d bytes are held", at, gpu.place(), gpu.Total-free)
			}
		}
	}
	t.Setenv("FAKE_CUDA_FAIL", "")
	if fewest := 3 * len(gpus); at <= fewest {
		t.Errorf("%d calls of a wake need memory, fewer than %d", at-1, fewest)
	}
	if !equal(contents(t, machine), want) {
		t.Error("other bytes came back")
	}
	if _, err := machine.Sleep(context.Background(), unwatched); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FAKE_CUDA_BYTES", "10485760,2097152") // what others left of each GPU
	var memoryErr *executor.MemoryError
	if _, _, err := machine.Wake(context.Background(), unwatched); !errors.As(err, &memoryErr) || memoryErr.Device != 1 || memoryErr.Free != lastingFree(gpus) {
		t.Errorf("%v, %+v", err, memoryErr)
	}
	if used := driver.Unreleased(); used != asleep {
		t.Errorf("it holds %s, and asleep %s", used, asleep)
	}
	t.Setenv("FAKE_CUDA_BYTES", "")
	if _, _, err := machine.Wake(context.Background(), unwatched); err != nil {
		t.Fatal(err)
	}
	if !equal(contents(t, machine), want) {
		t.Error("other bytes came back")
	}
}

// lastingFree is the free memory of the GPU of the toy's second device, with both arenas
// on one GPU or each on its own.
func lastingFree(gpus []int) int64 {
	if gpus[0] == gpus[1] {
		return 10485760
	}
	return 2097152
}

func lasting(t *testing.T) *program.Program {
	t.Helper()
	return parsed(t, lastingToy)
}

// If the host has no pinned memory left, nothing was released yet. A machine that fails
// during copies stays awake or asleep as it was, and a step or a wake still succeeds.
func TestSleepThatEnds(t *testing.T) {
	var given, stained atomic.Int64
	poisoned := func(_ int32, _ int64, wrong bool) {
		given.Add(1)
		if wrong {
			stained.Add(1)
		}
	}
	machine := opened(t, made(t, executor.GPUOptions{Devices: []int{0, 1}, Poisoned: poisoned}), lasting(t))
	step := func(number int64, want [][]byte) {
		t.Helper()
		inTurn(t, machine.program, want)
		if _, err := machine.Step(context.Background(), &executor.Step{Number: number}); err != nil {
			t.Fatal(err)
		}
		if !equal(contents(t, machine), want) {
			t.Error("a step makes other bytes")
		}
	}
	want := contents(t, machine)
	step(1, want)
	before := driver.Unreleased()
	t.Setenv("FAKE_CUDA_REGISTER", "0")
	for at := 1; at <= 2; at++ { // of each device's copy
		t.Setenv("FAKE_CUDA_FAIL", strconv.Itoa(at))
		_, err := machine.Sleep(context.Background(), unwatched)
		if name := fmt.Sprintf("the kept copy of device %d, ", at-1); !errors.Is(err, executor.ErrMemory) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
		t.Setenv("FAKE_CUDA_FAIL", "")
		step(int64(1+at), want)
	}
	if at := strings.Index(driver.Unreleased(), "pinned"); at < 0 {
		t.Errorf("it holds %s, and before %s", driver.Unreleased(), before)
	}
	ended := func() (context.Context, func(int64, int64)) {
		ctx, cancel := context.WithCancel(context.Background())
		return ctx, func(int64, int64) { cancel() }
	}
	ctx, onProgress := ended()
	if _, err := machine.Sleep(ctx, onProgress); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	step(4, want)
	if _, err := machine.Sleep(context.Background(), unwatched); err != nil {
		t.Fatal(err)
	}
	before = driver.Unreleased()
	ctx, onProgress = ended()
	for range 2 { // in its midst, and before it
		if _, _, err := machine.Wake(ctx, onProgress); !errors.Is(err, context.Canceled) || driver.Unreleased() != before {
			t.Errorf("%v; it holds %s, and asleep %s", err, driver.Unreleased(), before)
		}
	}
	if given.Load() != 4 || stained.Load() != 0 { // a sleep's and a wake's
		t.Errorf("%d arenas were poisoned and given back, of 4; %d were not poison", given.Load(), stained.Load())
	}
	if _, _, err := machine.Wake(context.Background(), unwatched); err != nil {
		t.Fatal(err)
	}
	asWoken(machine.works.bound, want)
	step(5, want)
}

// A fault counts a machine's maps through all its wakes, and pinned memory with them.
func TestFaultOfAWake(t *testing.T) {
	opens := int64(0)
	for at := int64(1); ; at++ {
		backend := made(t, executor.GPUOptions{Devices: []int{0, 0}, Fault: executor.Fault{Kind: executor.FailMap, At: at}})
		found, err := backend.Open(context.Background(), &bind.Bound{Program: lasting(t)})
		if err != nil {
			opens = at
			continue
		}
		machine, is := found.(*machine)
		if !is {
			t.Fatalf("%T", found)
		}
		var failed string
		for turn := range 2 {
			if _, err := machine.Sleep(context.Background(), unwatched); err != nil {
				failed = "sleep"
				break
			}
			if _, _, err := machine.Wake(context.Background(), unwatched); err != nil {
				if !strings.Contains(err.Error(), "which was to fail") {
					t.Error(err)
				}
				failed = fmt.Sprint("wake ", turn)
				break
			}
		}
		if want := append(make([]string, opens), "sleep", "sleep", "wake 0", "wake 0", "wake 1", "wake 1", ""); failed != want[at-1] {
			t.Errorf("fault %d, behind %d of opening: %q, want %q", at, opens, failed, want[at-1])
		}
		if err := machine.Close(); err != nil || driver.Unreleased() != "" {
			t.Errorf("%v; the process still holds %s", err, driver.Unreleased())
		}
		if failed == "" {
			return
		}
	}
}

// The check of free memory maps nothing, and leaks nothing.
func TestMemoryCheckBeforeMapping(t *testing.T) {
	bound := &bind.Bound{Program: lasting(t)}
	for _, test := range []struct {
		bytes string
		gpus  []int
		fits  bool
	}{{"12582912", []int{0, 0}, true}, {"12582911", []int{0, 0}, false}, {"8388608", []int{0, 1}, true}, {"8388608,4194303", []int{0, 1}, false}} {
		t.Setenv("FAKE_CUDA_BYTES", test.bytes)
		err := made(t, executor.GPUOptions{Devices: test.gpus}).CheckMemory(context.Background(), bound)
		var memoryErr *executor.MemoryError
		if test.fits && err != nil || !test.fits && (!errors.As(err, &memoryErr) || memoryErr.Device != 1) || driver.Unreleased() != "" {
			t.Errorf("%+v: %v; the process holds %q", test, err, driver.Unreleased())
		}
	}
	t.Setenv("FAKE_CUDA_TAKEN", "1")
	var taken *executor.TakenError
	if err := made(t, executor.GPUOptions{Devices: []int{0, 1}}).CheckMemory(context.Background(), bound); !errors.As(err, &taken) || driver.Unreleased() != "" {
		t.Errorf("%v; the process holds %q", err, driver.Unreleased())
	}
}
