package schedule

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
)

// A fence that copies gives the host the bytes of its moment, though the device continues. A fence
// that calls the host waits for it.
func TestCopied(t *testing.T) {
	jobs, err := backendtest.Forms("llama-tied")
	if err != nil {
		t.Fatal(err)
	}
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
