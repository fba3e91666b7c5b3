package schedule

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/fixtures"
)

// A fence that copies gives the host the bytes of its moment, though the device continues. A fence
// that calls the host waits for it.
func TestCopied(t *testing.T) {
	jobs := fixtures.Must(backendtest.Forms("llama-tied"))(t)
	of := jobs["generate"].Program
	read := func(instr int32) (offset, bytes int64) {
		buffer := &of.Buffers[of.Accesses[of.Instrs[instr].FirstAccess].Buffer]
		return buffer.Offset, buffer.Bytes
	}
	taken := func(seed uint64, copies bool) map[int32]string {
		scheduler, fake := open(t, of, false, seed)
		chain(t, scheduler)
		all, lock := make(map[int32]string), new(sync.Mutex)
		take := func(instr int32, data []byte) error {
			lock.Lock()
			defer lock.Unlock()
			all[instr] = string(data)
			return nil
		}
		step := &executor.Step{Number: 1}
		if copies {
			step.Copies = read
			step.Copied = func(instr int32, data []byte) error {
				time.Sleep(time.Millisecond) // the device is ahead by now
				return take(instr, data)
			}
		} else {
			step.Fence = func(instr int32) error {
				offset, bytes := read(instr)
				return take(instr, fake.arenas[of.Instrs[instr].Device][offset:offset+bytes])
			}
		}
		if _, err := scheduler.Step(context.Background(), step); err != nil {
			t.Fatal(err)
		}
		return all
	}
	want := taken(1, false)
	for seed := range uint64(6) {
		if got := taken(seed, true); len(want) == 0 || !maps.Equal(got, want) {
			t.Errorf("seed %d: %d fences copied other bytes than %d", seed, len(got), len(want))
		}
	}
}

// TestLastFence: a step waits for the host's call of its last fence, and fails with it.
func TestLastFence(t *testing.T) {
	of := parsed(t, "device 0 arena 256 budget 256\nroutine a a\nbuffer 0 out 0 +256 result\n0.0 compute forward a mb0 >out\n0.1 compute fence\n")
	scheduler, _ := open(t, of, false, 4)
	refused := errors.New("refused")
	_, err := scheduler.Step(context.Background(), &executor.Step{
		Number: 1,
		Copies: func(int32) (offset, bytes int64) { return 0, 8 },
		Copied: func(int32, []byte) error { return refused },
	})
	if !errors.Is(err, refused) || !strings.HasPrefix(err.Error(), "instruction "+of.Line(1)) {
		t.Errorf("%v", err)
	}
}

// TestStopBeforeNaN: if the host's call of a fence ends the step, a NaN of the decode after the fence
// is no error. A NaN of what runs before it is.
func TestStopBeforeNaN(t *testing.T) {
	of := parsed(t, "device 0 arena 256 budget 256\nroutine a a\nbuffer 0 out 0 +256 result\n0.0 compute forward a mb0 >out\n0.1 compute fence\n0.2 compute decode a mb0 >out\n0.3 compute fence\n")
	const before, stop, after = 0, 1, 2
	for late, spoiled := range map[bool]int32{true: after, false: before} {
		for seed := range uint64(8) {
			scheduler, _ := open(t, of, false, seed)
			work := scheduler.Work
			scheduler.Work = func(index int32) (*Work, error) {
				made, err := work(index)
				if err == nil && index == spoiled {
					made.Ended = func() *executor.ValueError { return &executor.ValueError{Unit: "a"} }
				}
				return made, err
			}
			took := false
			_, err := scheduler.Step(context.Background(), &executor.Step{
				Number: 1,
				Copies: func(int32) (offset, bytes int64) { return 0, 8 },
				Copied: func(index int32, _ []byte) error {
					if index != stop {
						return nil
					}
					time.Sleep(time.Millisecond) // the device is ahead by now
					took = true
					return executor.ErrStop
				},
			})
			if value := (*executor.ValueError)(nil); late && (err != nil || !took) || !late && !errors.As(err, &value) {
				t.Errorf("late %v, seed %d: called %v, %v", late, seed, took, err)
			}
		}
	}
}

// TestChains: in programs with random decodes and waits, a chain ends exactly where one call may not
// give the next line.
func TestChains(t *testing.T) {
	jobs := fixtures.Must(backendtest.Forms("llama-tied"))(t)
	of, random := jobs["generate"].Program, rand.New(rand.NewPCG(9, 9))
	for range 200 {
		scheduler, past := New(of, Options{}), make([]int64, len(of.Instrs))
		scheduler.Past = func(index int32) int64 { return past[index] }
		of.Waits = nil
		for i := range of.Instrs {
			instr := &of.Instrs[i]
			instr.Op, instr.MicroBatch, past[i] = program.Decode, int32(random.IntN(5)/4), random.Int64N(5)/4
			if random.IntN(5) == 0 {
				instr.Op = program.Fence
			}
			instr.FirstWait = int32(len(of.Waits))
			if random.IntN(4) == 0 {
				of.Waits = append(of.Waits, program.Wait{Instr: int32(random.IntN(len(of.Instrs)))})
			}
			instr.EndWait = int32(len(of.Waits))
		}
		var got, want [][]int32
		if err := scheduler.Chains(func(indexes []int32) error { got = append(got, indexes); return nil }); err != nil {
			t.Fatal(err)
		}
		for i := range scheduler.Streams {
			before := program.None
			for _, index := range scheduler.Streams[i].Lines {
				switch {
				case of.Instrs[index].Op != program.Decode:
				case before != program.None && joins(scheduler, before, index):
					want[len(want)-1] = append(want[len(want)-1], index)
				default:
					want = append(want, []int32{index})
				}
				before = index
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}
}

// joins reports whether one call may give two lines that follow each other on a stream.
func joins(scheduler *Scheduler, one, two int32) bool {
	of := scheduler.Program
	first, next := of.Instrs[one], of.Instrs[two]
	if first.Op != program.Decode || next.Op != program.Decode || first.MicroBatch != next.MicroBatch || scheduler.Past(one) != scheduler.Past(two) {
		return false
	}
	for i := range of.Instrs {
		for _, wait := range of.Waits[of.Instrs[i].FirstWait:of.Instrs[i].EndWait] {
			apart := scheduler.Of[i] != scheduler.Of[wait.Instr]
			if apart && (wait.Instr == one || int32(i) == two) {
				return false
			}
		}
	}
	return true
}

// TestLongChains: a step of chains of several lines makes the bytes of running the program in turn.
// Taps and faults in the middle of chains are called.
func TestLongChains(t *testing.T) {
	job := fixtures.Must(backendtest.Compiled("llama-tied", costmodel.Workload{Mode: costmodel.Infer, Precision: costmodel.BF16True, NewTokens: 4}, 1, 1))(t)
	of := job.Program
	want := [][]byte{bytes.Repeat([]byte{executor.Poison}, int(of.Devices[0].Arena))}
	if err := backendtest.InTurn(of, want, makes); err != nil {
		t.Fatal(err)
	}
	scheduler, fake := open(t, of, false, 3)
	chain(t, scheduler)
	given, called, faults := 0, 0, 0
	taps := make(map[executor.Tap]func() error)
	scheduler.Fault = &Fault{Step: 3, Give: func(*Args) error { faults++; return nil }}
	for i := range of.Instrs {
		if long := scheduler.Chain(int32(i)); long != nil && len(long.Works) > 1 {
			scheduler.Fault.Instr = int32(i) + 1
			taps[executor.Tap{Instr: int32(i) + 1}] = func() error { called++; return nil }
			give := long.Give
			long.Give = func(args *Args) error { given++; return give(args) }
		}
	}
	for number, test := range []struct {
		taps                  map[executor.Tap]func() error
		given, called, faults int
	}{{nil, 4, 0, 0}, {taps, 4, 4, 0}, {nil, 7, 4, 1}} {
		times, err := scheduler.Step(context.Background(), &executor.Step{Number: int64(number) + 1, Taps: test.taps})
		if err != nil || times.Devices[0].Wait < 0 || times.Devices[0].Decode <= 0 {
			t.Fatalf("step %d: %+v, %v", number+1, times, err)
		}
		if given != test.given || called != test.called || faults != test.faults {
			t.Errorf("step %d: %d chains, %d taps and %d faults, want %d, %d and %d", number+1, given, called, faults, test.given, test.called, test.faults)
		}
		if number == 0 && !bytes.Equal(fake.arenas[0], want[0]) {
			t.Error("the step made other bytes")
		}
	}
}

// chain makes the scheduler give each chain in one call, and returns how many chains there are.
func chain(tb testing.TB, scheduler *Scheduler) int {
	tb.Helper()
	chains := make(map[int32]*Chain)
	err := scheduler.Chains(func(indexes []int32) error {
		made, calls := new(Chain), Calls(nil)
		for _, index := range indexes {
			work, err := scheduler.Work(index)
			if err != nil {
				return err
			}
			made.Works, calls = append(made.Works, work), append(calls, work.Run)
		}
		made.Give = calls.Give
		chains[indexes[0]] = made
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	scheduler.Chain = func(index int32) *Chain { return chains[index] }
	return len(chains)
}
