package schedule

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/program"
)

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

// open is opened, to be closed when the test ends.
func open(tb testing.TB, of *program.Program, staged bool, seed uint64) (*Scheduler, *fake) {
	tb.Helper()
	on := make([]int, len(of.Devices))
	for i := range on {
		on[i] = i
	}
	scheduler, fake, err := opened(of, on, staged, seed, 0)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { closed(tb, scheduler, fake) })
	return scheduler, fake
}

// In whatever order queues take what they may, steps make the bytes of running the
// program in turn, and leave no call behind.
func TestStepsAreOne(t *testing.T) {
	jobs, err := backendtest.Forms("llama-tied")
	if err != nil {
		t.Fatal(err)
	}
	for name, job := range jobs {
		want := make([][]byte, len(job.Program.Devices))
		for i := range want {
			want[i] = bytes.Repeat([]byte{executor.Poison}, int(job.Program.Devices[i].Arena))
		}
		for range 2 {
			if err := backendtest.InTurn(job.Program, want, makes); err != nil {
				t.Fatal(err)
			}
		}
		for seed := range uint64(6) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				scheduler, fake := open(t, job.Program, seed%2 == 1, seed)
				if seed >= 3 && chain(t, scheduler) == 0 && job.Workload.NewTokens > 1 {
					t.Error("a generation has no chain")
				}
				for number := range int64(2) {
					fences := 0
					times, err := scheduler.Step(context.Background(), &executor.Step{Number: number + 1, Fence: func(int32) error {
						fences++
						return nil
					}})
					if err != nil {
						t.Fatal(err)
					}
					for i, of := range times.Devices {
						if of.Wait < 0 || of.Forward+of.Backward+of.Decode+of.Update <= 0 {
							t.Errorf("device %d: %+v", i, of)
						}
						halves := time.Duration(0) // each takes a tick or more
						for _, instr := range job.Program.Instrs {
							if instr.Device == int32(i) && instr.Op == program.BackwardWeight {
								halves++
							}
						}
						if of.Weights > 0 != (halves > 0) || of.Weights < halves || of.Weights > of.Backward {
							t.Errorf("device %d, %d halves of weights: %+v", i, halves, of)
						}
					}
				}
				for i := range want {
					if !bytes.Equal(fake.arenas[i], want[i]) {
						t.Errorf("device %d has other bytes", i)
					}
				}
				for _, queue := range fake.queues {
					if len(queue.lines) > 0 && queue.lines[0].waits == nil {
						t.Errorf("device %d: %d calls are left", queue.device, len(queue.lines))
					}
				}
			})
		}
	}
}

// TestSlots: a slot is written again when it was freed, and a message does not change
// when its sender continues.
func TestSlots(t *testing.T) {
	for slots := range 4 {
		of := parsed(t, backendtest.PassOn(slots, 6))
		want := [][]byte{bytes.Repeat([]byte{executor.Poison}, int(of.Devices[0].Arena)), bytes.Repeat([]byte{executor.Poison}, int(of.Devices[1].Arena))}
		if err := backendtest.InTurn(of, want, makes); err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(20) {
			scheduler, fake := open(t, of, seed%2 == 1, seed)
			if _, err := scheduler.Step(context.Background(), &executor.Step{Number: 1}); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(fake.arenas[0], want[0]) || !bytes.Equal(fake.arenas[1], want[1]) {
				t.Errorf("%d slots, seed %d: other bytes", slots, seed)
			}
		}
	}
}

// The first reason is the one that a step ends by.
func TestFirstReason(t *testing.T) {
	board, first := new(board), errors.New("first")
	board.fail(first)
	board.fail(errors.New("second"))
	if err := board.failed(); err != first { //nolint:errorlint // it is this one
		t.Error(err)
	}
}

// A message of many parts goes round the relay and arrives whole; what it leaves of
// its slot is poison.
func TestRelayOfManyParts(t *testing.T) {
	const size, left = 6*relaySize + 4096, 512
	of := parsed(t, fmt.Sprintf(`
device 0 arena %[1]d budget %[1]d
device 1 arena %[2]d budget %[2]d
channel act[1] 0>1 slots 1 bytes %[2]d
buffer 0 out 0 +%[1]d stream
buffer 1 slot 0 +%[2]d slot
0.0 compute zero >out
0.1 compute send act[1]#0 out
1.0 compute recv act[1]#0 >slot
1.1 compute fence slot
1.2 compute free act[1]#0
`, size, size+left))
	scheduler, fake := open(t, of, true, 1)
	if parts, staging := scheduler.Links[0].Staging(); parts != relayParts || staging != relayParts*relaySize {
		t.Errorf("%d parts of %d bytes", parts, staging)
	}
	for i := range fake.arenas[0] {
		fake.arenas[0][i] = byte(i ^ i>>9 ^ i>>17)
	}
	const steps = 8
	for number := range int64(steps) {
		clear(fake.arenas[1])
		if _, err := scheduler.Step(context.Background(), &executor.Step{Number: number + 1}); err != nil {
			t.Fatal(err)
		}
		if want := append(bytes.Clone(fake.arenas[0]), bytes.Repeat([]byte{executor.Poison}, left)...); !bytes.Equal(fake.arenas[1], want) {
			t.Error("the message arrived with other bytes")
		}
	}
	if fences := scheduler.Devices[1].Driver.(*fakeDevice).fences; fences != steps { //nolint:forcetypeassert,errcheck // there are no others
		t.Errorf("%d fences were passed", fences)
	}
}

// TestTaps: a tap sees what the kernels before it made, and nothing of later ones.
func TestTaps(t *testing.T) {
	of := parsed(t, backendtest.PassOn(1, 3))
	scheduler, fake := open(t, of, false, 2)
	step := &executor.Step{Number: 1, Taps: make(map[executor.Tap]func() error)}
	var seen []string
	for i := range of.Instrs {
		instr := &of.Instrs[i]
		if instr.Device != 1 || !instr.Op.Runs() {
			continue
		}
		into := &of.Buffers[of.Accesses[instr.FirstAccess+1].Buffer]
		for kernel := range 2 {
			step.Taps[executor.Tap{Instr: int32(i), Kernel: kernel}] = func() error {
				poison := fake.arenas[1][into.Offset] == executor.Poison && fake.arenas[1][into.Offset+1] == executor.Poison
				seen = append(seen, fmt.Sprintf("%d%v", kernel, poison))
				return nil
			}
		}
	}
	if _, err := scheduler.Step(context.Background(), step); err != nil {
		t.Fatal(err)
	}
	if want := strings.Repeat("0true 1false ", 3); strings.Join(seen, " ")+" " != want {
		t.Errorf("%v, want %s", seen, want)
	}
}

// TestFaults: the reason for which a step ends is reported with its line, and the next step runs
// from the beginning.
func TestFaults(t *testing.T) {
	of := parsed(t, backendtest.PassOn(1, 4))
	broken := errors.New("it broke")
	for i := range of.Instrs {
		if !of.Instrs[i].Op.Runs() {
			continue
		}
		for _, want := range []error{broken, executor.ErrStop, context.Canceled} {
			scheduler, _ := open(t, of, i%2 == 0, uint64(i))
			ctx, cancel := context.WithCancel(context.Background())
			times, err := scheduler.Step(ctx, &executor.Step{Number: 1, Taps: map[executor.Tap]func() error{{Instr: int32(i)}: func() error {
				if want == context.Canceled { //nolint:errorlint // it is this one
					cancel()
					<-ctx.Done()
					return nil
				}
				return want
			}}})
			cancel()
			switch {
			case want == executor.ErrStop: //nolint:errorlint // it is this one
				if err != nil || times == nil {
					t.Errorf("%s: %v, %v", of.Line(int32(i)), times, err)
				}
			case !errors.Is(err, want) || want == broken && !strings.HasPrefix(err.Error(), "instruction "+of.Line(int32(i))+": "): //nolint:errorlint // it is this one
				t.Errorf("%s: %v", of.Line(int32(i)), err)
			}
			if _, err := scheduler.Step(context.Background(), &executor.Step{Number: 2}); err != nil {
				t.Errorf("%s: the next step: %v", of.Line(int32(i)), err)
			}
		}
	}
}

// TestFirstValue: if several devices find a NaN or an infinity, the one whose line was
// given first is reported, whichever is found first.
func TestFirstValue(t *testing.T) {
	of := parsed(t, backendtest.PassOn(2, 1))
	for seed := range uint64(8) {
		scheduler, _ := open(t, of, false, seed)
		work := scheduler.Work
		scheduler.Work = func(index int32) (*Work, error) {
			made, err := work(index)
			made.Ended = func() *executor.ValueError { return &executor.ValueError{Unit: fmt.Sprint(of.Instrs[index].Device)} }
			return made, err
		}
		_, err := scheduler.Step(context.Background(), &executor.Step{Number: 7})
		var value *executor.ValueError
		if !errors.As(err, &value) || value.Unit != "0" || value.Op != program.Forward || value.Step != 7 {
			t.Errorf("%v", err)
		}
	}
}

// A call that does not end ends the step, which says where everything stands.
func TestHang(t *testing.T) {
	of := parsed(t, backendtest.PassOn(1, 2))
	scheduler, fake := open(t, of, false, 3)
	scheduler.Fault = &Fault{Instr: of.Devices[0].First, Step: 2, Says: "a call that does not end", Give: func(args *Args) error {
		return args.Queue.(*fakeQueue).add(fakeLine{stuck: true}) //nolint:errcheck,forcetypeassert // there are no others
	}}
	if _, err := scheduler.Step(context.Background(), &executor.Step{Number: 1}); err != nil {
		t.Fatal(err)
	}
	scheduler.StallLimit = time.Second / 2 // longer than the other threads are kept from a processor
	_, err := scheduler.Step(context.Background(), &executor.Step{Number: 2})
	var hang *executor.HangError
	if !errors.As(err, &hang) {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{
		"device 0, compute: 0 of 2 lines have ended, 2 were given; behind the last that is known to have ended: 0.0 compute forward a mb0 >out, before which is a call that does not end",
		"device 0, to1: 0 of 2 lines have ended, 2 were given; behind the last that is known to have ended: 0.1 to1 send mb0 act[1]#0 out after compute:0.0; it waits for 0.0 compute forward a mb0 >out",
		"1.0 compute recv mb0 act[1]#0 >slot[0]; it waits for 0.1 to1 send",
		"channel act[1], device 0 to device 1, 1 slots: of 2 messages 0 were sent, 0 received, 0 freed",
	} {
		if !strings.Contains(hang.State, want) {
			t.Errorf("%s\nis without %q", hang.State, want)
		}
	}
	if err := scheduler.Devices[0].Do(func() error { return scheduler.Devices[0].Finish(0, "here") }); !errors.As(err, &hang) || hang.State != "here" {
		t.Errorf("%v", err)
	}
	for _, queue := range fake.queues {
		queue.lines = nil
	}
}

// A device that is lost ends the step, whatever the others wait for of it; of those that
// answer no more the one that was at something is named.
func TestLost(t *testing.T) {
	of := parsed(t, backendtest.PassOn(1, 3))
	for _, with := range []bool{false, true} {
		scheduler, fake := open(t, of, false, 4)
		at := int32(-1)
		for i := range of.Instrs {
			if of.Instrs[i].Device == 1 && of.Instrs[i].Op.Runs() {
				at = int32(i)
			}
		}
		scheduler.Fault = &Fault{Instr: at, Step: 1, Give: func(args *Args) error {
			return args.Queue.(*fakeQueue).add(fakeLine{stuck: true}) //nolint:errcheck,forcetypeassert // there are no others
		}}
		go func() { // as a driver does, which ends contexts when the others have stalled
			for before := int64(-1); ; {
				fake.lock.Lock()
				stuck := slices.ContainsFunc(fake.queues, func(queue *fakeQueue) bool { return queue.device == 1 && len(queue.lines) > 0 && queue.lines[0].stuck })
				if stuck && fake.ticks == before {
					fake.dead[1], fake.dead[0] = true, with
					fake.lock.Unlock()
					return
				}
				before = fake.ticks
				fake.lock.Unlock()
				for range 100 { // each thread looks at its queues between three of its tasks
					for _, device := range scheduler.Devices {
						_ = device.Do(func() error { return nil })
					}
				}
			}
		}()
		_, err := scheduler.Step(context.Background(), &executor.Step{Number: 1})
		var lost *executor.LostError
		if want := map[bool]string{false: "[GPU 1] []", true: "[GPU 1] [GPU 0]"}[with]; !errors.As(err, &lost) || fmt.Sprint(lost.GPUs, lost.With) != want || !strings.Contains(lost.State, "device 1, compute: ") {
			t.Errorf("%v, want %s", err, want)
		}
		fake.lock.Lock()
		clear(fake.dead)
		for _, queue := range fake.queues {
			queue.lines = nil
		}
		fake.lock.Unlock()
	}
}

// TestEveryCallFails: whichever call of the driver fails, it is reported, and no
// object remains allocated.
func TestEveryCallFails(t *testing.T) {
	of := parsed(t, backendtest.PassOn(1, 2))
	for at := 1; ; at++ {
		scheduler, fake, err := opened(of, []int{0, 1}, true, 5, at)
		if err == nil {
			_, err = scheduler.Step(context.Background(), &executor.Step{Number: 1})
		}
		for _, queue := range fake.queues {
			queue.lines = nil
		}
		closed(t, scheduler, fake)
		if err == nil {
			if at < 50 {
				t.Errorf("there are %d calls", at)
			}
			return
		}
		if !errors.Is(err, errFake) {
			t.Errorf("call %d: %v", at, err)
		}
	}
}

// TestMarks: only what waits for something else has an event of its beginning, and no
// event is made without a waiter.
func TestMarks(t *testing.T) {
	of := parsed(t, backendtest.PassOn(1, 3))
	scheduler, _ := open(t, of, false, 6)
	for i := range scheduler.events {
		if began := scheduler.events[i].began; Computes(of.Instrs[i].Op) != (began != nil) {
			t.Errorf("%s: %v", of.Line(int32(i)), began)
		}
	}
	jobs, err := backendtest.Forms("llama-tied")
	if err != nil {
		t.Fatal(err)
	}
	var without, all, none int
	of = jobs["generate"].Program
	scheduler, _ = open(t, of, false, 7)
	for i := range scheduler.events {
		if scheduler.events[i].ended == nil {
			none++
		}
		if Computes(of.Instrs[i].Op) {
			all++
			if scheduler.events[i].began == nil {
				without++
			}
		}
	}
	if without == 0 || without == all || none == 0 {
		t.Errorf("%d of %d have no beginning, %d no event", without, all, none)
	}
}

// Work is prepared once for all instructions that do the same to the same buffers.
func TestKeep(t *testing.T) {
	jobs, err := backendtest.Forms("llama-tied")
	if err != nil {
		t.Fatal(err)
	}
	of := jobs["generate"].Program
	scheduler, _ := open(t, of, false, 8)
	same := func(index int32) string {
		instr := of.Instrs[index]
		return fmt.Sprint(instr.Device, instr.Stream, instr.Op, instr.Routine, instr.MicroBatch, of.Accesses[instr.FirstAccess:instr.EndAccess])
	}
	cached, prepared, given := make(map[string]bool), 0, 0
	err = Keep(scheduler, func(index int32) (string, error) {
		prepared++
		cached[same(index)] = true
		return same(index), nil
	}, func(index int32, one string) {
		given++
		if one != same(index) {
			t.Errorf("%s is given what was prepared for %s", of.Line(index), one)
		}
	})
	if err != nil || prepared != len(cached) || 2*prepared > given {
		t.Errorf("%v: %d were prepared for %d, %d of them different", err, prepared, given, len(cached))
	}
}
