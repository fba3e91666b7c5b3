package cpu

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/program"
)

// goroutines waits until as many are left as there were.
func goroutines(t *testing.T, want int) {
	t.Helper()
	for runtime.NumGoroutine() > want {
		time.Sleep(time.Millisecond)
	}
}

// At whatever instruction a step is cancelled, it ends with nothing left, says
// why, and the next one runs from the beginning.
func TestCancel(t *testing.T) {
	for _, slots := range []int{0, 1, 2} {
		heap := newHeap()
		machine := opened(t, &heap.backend, parsed(t, backendtest.PassOn(slots, 4)))
		before := runtime.NumGoroutine()
		for at := range int32(len(machine.program.Instrs)) {
			if op := machine.program.Instrs[at].Op; !op.Runs() {
				continue
			}
			ctx, cancel := context.WithCancel(context.Background())
			_, err := machine.Step(ctx, toy(machine, func(index int32) error {
				if index == at {
					cancel()
					<-ctx.Done()
					time.Sleep(time.Millisecond) // an instruction that has begun ends
				}
				return nil
			}))
			if last := at == int32(len(machine.program.Instrs))-2; !errors.Is(err, context.Canceled) && (err != nil || !last) {
				t.Errorf("slots %d, cancelled at %s: error %v", slots, machine.program.Line(at), err)
			}
			goroutines(t, before)
			if _, err := machine.Step(context.Background(), toy(machine, func(int32) error { return nil })); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := machine.Step(ctx, toy(machine, func(int32) error { return nil })); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled before it began: error %v", err)
		}
		if heap.reserved.Load() != 2 {
			t.Errorf("%d arenas are held, want 2", heap.reserved.Load())
		}
		if err := machine.Close(); err != nil || heap.reserved.Load() != 0 {
			t.Errorf("closed: error %v, %d arenas are held", err, heap.reserved.Load())
		}
		goroutines(t, before)
	}
}

// A device at fault ends the others, which wait for it, and is named.
func TestFault(t *testing.T) {
	machine := opened(t, &newHeap().backend, parsed(t, backendtest.PassOn(1, 4)))
	fault := errors.New("it broke")
	for at := range int32(len(machine.program.Instrs)) {
		if !machine.program.Instrs[at].Op.Runs() {
			continue
		}
		before := runtime.NumGoroutine()
		_, err := machine.Step(context.Background(), toy(machine, func(index int32) error {
			if index == at {
				return fault
			}
			return nil
		}))
		if !errors.Is(err, fault) || !strings.Contains(err.Error(), machine.program.Line(at)) {
			t.Errorf("%s: error %v", machine.program.Line(at), err)
		}
		goroutines(t, before)
	}
}

// A stop ends the step and no more: it is no error, and the next step runs.
func TestStop(t *testing.T) {
	machine := opened(t, &newHeap().backend, parsed(t, `
device 0 arena 256 budget 256
device 1 arena 256 budget 256
channel ids 1>0 slots 1 bytes 256
buffer 0 slot 0 +256 slot
buffer 1 ids 0 +256 stream
1.0 compute zero >ids
1.1 compute fence ids
1.2 to0 send ids#0 ids after compute:1.0 compute:1.1
0.0 compute recv ids#0 >slot
0.1 compute fence slot
0.2 compute free ids#0
`))
	for _, stops := range []bool{true, false, true, false} {
		fences := 0
		times, err := machine.Step(context.Background(), &executor.Step{Fence: func(int32) error {
			fences++
			if stops {
				return executor.ErrStop
			}
			return nil
		}})
		if want := map[bool]int{true: 1, false: 2}[stops]; err != nil || times == nil || fences != want {
			t.Errorf("stops %v: error %v, %d fences, want %d", stops, err, fences, want)
		}
	}
}

// TestTimes: the time that a device waits after its first message does not count as its work.
func TestTimes(t *testing.T) { synctest.Test(t, testTimes) }

func testTimes(t *testing.T) {
	machine := opened(t, &newHeap().backend, parsed(t, backendtest.PassOn(2, 4)))
	const nap = 5 * time.Millisecond
	times, err := machine.Step(context.Background(), toy(machine, func(index int32) error {
		if machine.program.Instrs[index].Device == 0 {
			time.Sleep(nap)
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	first, second := times.Devices[0], times.Devices[1]
	if first.Forward < 4*nap || first.Wait != 0 || second.Wait != first.Forward-nap || second.Forward != 0 || times.Step != first.Forward {
		t.Errorf("%+v", times)
	}
	if first.Backward+first.Decode+first.Update != 0 {
		t.Errorf("%+v", first)
	}
}

// TestTap: taps come before the kernel that they name, or after an instruction
// without kernels. Loads are no part of a step.
func TestTap(t *testing.T) {
	machine := opened(t, &newHeap().backend, parsed(t, backendtest.PassOn(1, 1)))
	var seen []int32
	tap := func(index int32) func() error {
		return func() error {
			seen = append(seen, index)
			return nil
		}
	}
	_, err := machine.Step(context.Background(), &executor.Step{Taps: map[executor.Tap]func() error{
		{Instr: 0}: tap(0), {Instr: 0, Kernel: 1}: tap(-1), {Instr: 3}: tap(3), {Instr: 1}: tap(1),
	}})
	if err != nil || len(seen) != 2 || seen[0] != 0 || seen[1] != 3 || machine.program.Instrs[1].Op != program.Send {
		t.Errorf("error %v, taps %v", err, seen)
	}
}
