//go:build cuda && linux && cgo && amd64

package cuda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
)

// forms are programs of every kind: who waits for whom differs.
func forms(tb testing.TB) map[string]*executor.Job {
	tb.Helper()
	jobs, err := backendtest.Forms("llama-tied")
	if err != nil {
		tb.Fatal(err)
	}
	return jobs
}

// inTurn carries a program out with one hand.
func inTurn(tb testing.TB, of *program.Program, arenas [][]byte) {
	tb.Helper()
	if err := backendtest.InTurn(of, arenas, makes); err != nil {
		tb.Fatal(err)
	}
}

// contents are the bytes of all arenas.
func contents(tb testing.TB, machine *machine) [][]byte {
	tb.Helper()
	all := make([][]byte, len(machine.devices))
	for i, device := range machine.devices {
		all[i] = make([]byte, device.plan.Arena)
		if err := machine.Read(i, 0, all[i]); err != nil {
			tb.Fatal(err)
		}
	}
	return all
}

// Every way of laying the devices of a program on GPUs gives the bytes of running
// it in turn, step after step, in whatever order the GPUs take what they may.
func TestStepsAreOne(t *testing.T) {
	for name, job := range forms(t) {
		want := make([][]byte, len(job.Program.Devices))
		for i := range want {
			want[i] = bytes.Repeat([]byte{executor.Poison}, int(job.Program.Devices[i].Arena))
		}
		inTurn(t, job.Program, want)
		inTurn(t, job.Program, want)
		for _, gpus := range [][]int{nil, {0, 0, 0, 0}, {1, 0, 1, 0}} {
			if gpus != nil {
				gpus = gpus[:len(want)]
			}
			for range 3 {
				t.Run(fmt.Sprint(name, gpus), func(t *testing.T) {
					machine := opened(t, made(t, executor.GPUOptions{Devices: gpus}), job.Program)
					for number := range int64(2) {
						times, err := machine.Step(context.Background(), &executor.Step{Number: number + 1, Fence: func(int32) error {
							return machine.Read(0, 0, make([]byte, 8))
						}})
						if err != nil {
							t.Fatal(err)
						}
						if len(times.Devices) != len(want) || times.Step <= 0 {
							t.Errorf("%+v", times)
						}
						for _, of := range times.Devices {
							whole := of.Forward + of.Backward + of.Decode + of.Update + of.Wait
							if least := min(of.Forward+of.Decode, of.Wait, of.Backward, of.Update); least < 0 || whole <= 0 || whole > times.Step+time.Millisecond {
								t.Errorf("%+v of %v", of, times.Step)
							}
						}
					}
					got := contents(t, machine)
					for i := range want {
						if !bytes.Equal(got[i], want[i]) {
							t.Errorf("device %d has other bytes", i)
						}
					}
				})
			}
		}
	}
}

// A message keeps its bytes while the sender continues. No kernel reads a slot before its
// message has arrived. The test runs with taps and with kernels.
func TestMessages(t *testing.T) {
	const count = 6
	for _, slots := range []int{0, 1, 2, 3} {
		for _, gpus := range [][]int{{0, 0}, {0, 1}} {
			for _, tapped := range []bool{false, true} {
				t.Run(fmt.Sprint(slots, gpus, tapped), func(t *testing.T) {
					machine := opened(t, made(t, executor.GPUOptions{Devices: gpus}), parsed(t, backendtest.PassOn(slots, count)))
					want := [][]byte{bytes.Repeat([]byte{executor.Poison}, 256), bytes.Repeat([]byte{executor.Poison}, int(machine.devices[1].plan.Arena))}
					inTurn(t, machine.program, want)
					step := &executor.Step{Number: 1, Taps: make(map[executor.Tap]func() error)}
					taps := 0
					for i := range machine.program.Instrs {
						if instr := &machine.program.Instrs[i]; tapped && instr.Device == 1 && instr.Op == program.Forward {
							step.Taps[executor.Tap{Instr: int32(i), Kernel: 1}] = func() error {
								taps++
								buffer := &machine.program.Buffers[machine.program.Accesses[instr.FirstAccess+1].Buffer]
								got := make([]byte, buffer.Bytes)
								if err := machine.Read(1, buffer.Offset, got); err != nil {
									return err
								}
								if !bytes.Equal(got, want[1][buffer.Offset:buffer.Offset+buffer.Bytes]) {
									t.Errorf("%s is not there where it is looked at", buffer.Name)
								}
								return nil
							}
						}
					}
					if _, err := machine.Step(context.Background(), step); err != nil {
						t.Fatal(err)
					}
					if tapped && taps != count {
						t.Errorf("%d taps were called, want %d", taps, count)
					}
					for i, got := range contents(t, machine) {
						if !bytes.Equal(got, want[i]) {
							t.Errorf("device %d has other bytes", i)
						}
					}
				})
			}
		}
	}
}

// A message that is smaller than its slot leaves poison in the rest of it, not the
// slot's earlier bytes.
func TestMessageSmallerThanItsSlot(t *testing.T) {
	machine := opened(t, made(t, executor.GPUOptions{Devices: []int{0, 0}}), parsed(t, `
device 0 arena 256 budget 256
device 1 arena 512 budget 512
channel act[1] 0>1 slots 1 bytes 512
buffer 0 out 0 +256 stream
buffer 1 slot 0 +512 slot
0.0 compute zero >out
0.1 compute send act[1]#0 out
1.0 compute recv act[1]#0 >slot
1.1 compute fence slot
1.2 compute free act[1]#0
`))
	for range 10 {
		err := machine.Fill(0, 0, 256, 0)
		for range 20 { // the message comes behind all of it
			err = errors.Join(err, machine.Fill(1, 0, 512, 7))
		}
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 512)
		_, err = machine.Step(context.Background(), &executor.Step{Fence: func(int32) error { return machine.Read(1, 0, got) }})
		want := append(make([]byte, 256), bytes.Repeat([]byte{executor.Poison}, 256)...)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v, and the slot has %x", err, got)
		}
	}
}

// Whatever ends a step ends all of it, and the next one is as if there had been none.
func TestStepsThatEnd(t *testing.T) {
	broken := errors.New("broken")
	for _, device := range []int32{0, 1} {
		for name, want := range map[string]error{"stop": nil, "broken": broken, "cancelled": context.Canceled} {
			t.Run(fmt.Sprint(name, device), func(t *testing.T) {
				transport := map[int32]executor.Transport{0: executor.HostTransport, 1: executor.PeerTransport}[device]
				machine := opened(t, made(t, executor.GPUOptions{Devices: []int{0, 1}, Transport: transport}), parsed(t, backendtest.PassOn(1, 6)))
				expected := contents(t, machine)
				inTurn(t, machine.program, expected)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				step := &executor.Step{Number: 1, Taps: make(map[executor.Tap]func() error)}
				for i := range machine.program.Instrs {
					if instr := &machine.program.Instrs[i]; instr.Device == device && instr.Op == program.Forward && instr.MicroBatch == 3 {
						step.Taps[executor.Tap{Instr: int32(i)}] = func() error {
							switch name {
							case "stop":
								return executor.ErrStop
							case "broken":
								return broken
							}
							cancel()
							return nil
						}
					}
				}
				times, err := machine.Step(ctx, step)
				if !errors.Is(err, want) || (err == nil) != (times != nil) {
					t.Errorf("%v, %v; want %v", times, err, want)
				}
				if _, err := machine.Step(context.Background(), &executor.Step{Number: 2}); err != nil {
					t.Fatal(err)
				}
				for i, got := range contents(t, machine) {
					if !bytes.Equal(got, expected[i]) {
						t.Errorf("device %d has other bytes", i)
					}
				}
			})
		}
	}
}

// Without enough free memory Open maps nothing and leaks nothing, even if another process
// takes the memory in between.
func TestTooLittleMemory(t *testing.T) {
	of := parsed(t, "device 0 arena 3145728 budget 3145728\ndevice 1 arena 1048576 budget 1048576\n")
	for _, test := range []struct {
		name, value string
		gpus        []int
		device      int32
		need, free  int64
	}{
		{"FAKE_CUDA_BYTES", "4194304", []int{2, 2}, 1, 6 << 20, 4 << 20},
		{"FAKE_CUDA_BYTES", "2097152", []int{1, 0}, 0, 4 << 20, 2 << 20},
		{"FAKE_CUDA_FULL", "4194304", []int{0, 0}, -1, 0, 0},
	} {
		t.Setenv(test.name, test.value)
		found, err := made(t, executor.GPUOptions{Devices: test.gpus}).Open(context.Background(), &bind.Bound{Program: of})
		var memoryErr *executor.MemoryError
		var driverErr *driver.Error
		switch {
		case found != nil || err == nil:
			t.Errorf("%+v: it was opened: %v", test, err)
		case test.device < 0:
			if !errors.As(err, &driverErr) || driverErr.Code != driver.OutOfMemory || !strings.Contains(err.Error(), "device 1 on GPU 0 (Fake 0)") {
				t.Errorf("%+v: %v", test, err)
			}
		case !errors.As(err, &memoryErr) || memoryErr.Device != test.device || memoryErr.Need != test.need || memoryErr.Free != test.free:
			t.Errorf("%+v: %v", test, err)
		}
		if leaked := driver.Unreleased(); leaked != "" {
			t.Errorf("the process still holds %s", leaked)
		}
		t.Setenv(test.name, "")
	}
	for fails := int64(1); fails <= 2; fails++ {
		_, err := made(t, executor.GPUOptions{Devices: []int{0, 1}, Fault: executor.Fault{Kind: executor.FailMap, At: fails}}).Open(context.Background(), &bind.Bound{Program: of})
		var driverErr *driver.Error
		if want := fmt.Sprintf("device %d on GPU %[1]d (Fake %[1]d): cuMemCreate, which was to fail: CUDA_ERROR_OUT_OF_MEMORY (2)", fails-1); !errors.As(err, &driverErr) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if leaked := driver.Unreleased(); leaked != "" {
			t.Errorf("the process still holds %s", leaked)
		}
	}
	for _, gpus := range [][]int{{0}, {0, 4}, {0, -1}} {
		if _, err := made(t, executor.GPUOptions{Devices: gpus}).Open(context.Background(), &bind.Bound{Program: of}); err == nil || driver.Unreleased() != "" {
			t.Errorf("devices %v: %v, held are %q", gpus, err, driver.Unreleased())
		}
	}
}

// Bytes that are written are read again, in parts of the ring and over its end, and no
// byte next to them changes.
func TestTransfers(t *testing.T) {
	backend := made(t, executor.GPUOptions{})
	shape := backend.shape(1)
	size := shape.Parts*shape.Size + 3<<20
	machine := opened(t, backend, parsed(t, fmt.Sprintf("device 0 arena %d budget %d\n", size, size)))
	want := make([]byte, size-100)
	for i := range want {
		want[i] = byte(i * 7 / 3)
	}
	if err := machine.Write(0, 50, want); err != nil {
		t.Fatal(err)
	}
	if err := machine.Fill(0, 1000, 24, 9); err != nil {
		t.Fatal(err)
	}
	copy(want[950:], bytes.Repeat([]byte{9}, 24))
	around := bytes.Repeat([]byte{executor.Poison}, 50)
	if got := contents(t, machine)[0]; !bytes.Equal(got, bytes.Join([][]byte{around, want, around}, nil)) {
		t.Error("other bytes came back")
	}
	for _, bad := range [][2]int64{{-1, 1}, {int64(size), 1}, {1, int64(size)}} {
		if err := machine.Read(0, bad[0], make([]byte, bad[1])); err == nil {
			t.Errorf("%d bytes at %d were read", bad[1], bad[0])
		}
	}
}
