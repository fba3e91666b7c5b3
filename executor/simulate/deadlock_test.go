package simulate_test

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/simulate"
)

// exchange is two devices that each send a message before they take the other's.
func exchange(slots int32) *program.Program {
	message := func(device int32, op program.Op, channel int32) program.Instr {
		return program.Instr{Device: device, Op: op, Routine: program.None, MicroBatch: program.None, Channel: channel}
	}
	return &program.Program{
		Devices: []program.Device{
			{ID: 0, Streams: []string{"compute"}, First: 0, End: 3},
			{ID: 1, Streams: []string{"compute"}, First: 3, End: 6},
		},
		Channels: []program.Channel{{Name: "there", From: 0, To: 1, Slots: slots}, {Name: "back", From: 1, To: 0, Slots: slots}},
		Instrs: []program.Instr{
			message(0, program.Send, 0), message(0, program.Recv, 1), message(0, program.Free, 1),
			message(1, program.Send, 1), message(1, program.Recv, 0), message(1, program.Free, 0),
		},
	}
}

func TestDeadlock(t *testing.T) {
	run(t, exchange(1))
	stuck := func(prog *program.Program, want string) {
		t.Helper()
		_, err := simulate.Run(prog)
		var deadlock *simulate.DeadlockError
		if !errors.As(err, &deadlock) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	stuck(exchange(0), `deadlock: 2 streams stop
0.0 compute send there#0 waits for 1.1 compute recv there#0
1.0 compute send back#0 waits for 0.1 compute recv back#0`)

	lost := exchange(1)
	lost.Instrs[0].Sequence = 7 // of no message that is received
	stuck(lost, `deadlock: 2 streams stop
0.0 compute send there#7 waits for a free of there#6: there is none
1.1 compute recv there#0 waits for a send of there#0: there is none`)

	lost = exchange(0)
	lost.Instrs[4].Sequence = 2_000_000_000
	stuck(lost, `deadlock: 2 streams stop
0.0 compute send there#0 waits for a recv of there#0: there is none
1.0 compute send back#0 waits for 0.1 compute recv back#0`)

	late := exchange(1)
	late.Waits = []program.Wait{{Instr: 2}}
	late.Instrs[0].EndWait = 1
	stuck(late, `deadlock: 2 streams stop
0.0 compute send there#0 waits for 0.2 compute free back#0
1.1 compute recv there#0 waits for 0.0 compute send there#0`)
}

// TestTimes: a sum of times beyond int64 is an error.
func TestTimes(t *testing.T) {
	prog := exchange(1)
	prog.Timed = true
	prog.Instrs[0].Ticks, prog.Instrs[3].Ticks = 1<<62, 1<<62
	if _, err := simulate.Run(prog); err == nil {
		t.Error("times beyond int64 add up")
	}
	prog.Instrs[3].Ticks = -1
	if _, err := simulate.Run(prog); err == nil {
		t.Error("a negative time is taken")
	}
}

// TestSlots: whatever the pipeline and its costs, a step with more slots takes no
// longer, nothing of it starts later, and a program has the same simulation every time.
func TestSlots(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 5))
	kinds := []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe, costmodel.Interleaved}
	for range 200 {
		kind := costmodel.Schedule{Kind: kinds[random.IntN(3)], Stages: 1 + random.Int64N(5), Chunks: 1}
		kind.MicroBatches = 1 + random.Int64N(12)
		if kind.Kind == costmodel.Interleaved {
			kind.Chunks = 1 + random.Int64N(3)
			kind.MicroBatches = kind.Stages * (1 + random.Int64N(4))
		}
		took := costs{1 + random.Int64N(50), 1 + random.Int64N(99), random.Int64N(80), random.Int64N(30)}
		var fewer *simulate.Result
		for slots := int32(1); slots <= 4; slots++ {
			prog := schedule(kind, slots, took)
			result, err := simulate.Run(prog)
			if err != nil {
				if fewer != nil {
					t.Fatalf("%v %v, %d slots: %v; with fewer it ends", kind, took, slots, err)
				}
				continue // an interleaved schedule may need a second slot
			}
			if again := run(t, prog); !reflect.DeepEqual(result, again) {
				t.Fatalf("%v %v, %d slots: played otherwise the second time", kind, took, slots)
			}
			sound(t, prog, result)
			for i := range prog.Instrs {
				if fewer != nil && (result.Makespan > fewer.Makespan || result.Start[i] > fewer.Start[i]) {
					t.Fatalf("%v %v, %d slots: instruction %d starts at %d, with one less at %d", kind, took, slots, i, result.Start[i], fewer.Start[i])
				}
			}
			fewer = result
		}
		if fewer == nil {
			t.Errorf("%v: four slots are too few", kind)
		}
	}
}

// sound holds a result against what the plain words of the rules say: nothing
// starts before what it waits for, and nothing later than the last of that.
func sound(t *testing.T, prog *program.Program, result *simulate.Result) {
	t.Helper()
	type message struct {
		op                program.Op
		channel, sequence int32
	}
	found := map[message]int{}
	for i, instr := range prog.Instrs {
		if instr.Channel >= 0 {
			found[message{instr.Op, instr.Channel, instr.Sequence}] = i
		}
	}
	for i, instr := range prog.Instrs {
		from := int64(0)
		for before := prog.Devices[instr.Device].First; before < int32(i); before++ {
			if prog.Instrs[before].Stream == instr.Stream {
				from = max(from, result.End[before])
			}
		}
		for _, wait := range prog.Waits[instr.FirstWait:instr.EndWait] {
			from = max(from, result.End[wait.Instr])
		}
		if instr.Op == program.Recv {
			from = max(from, result.End[found[message{program.Send, instr.Channel, instr.Sequence}]]+prog.Channels[instr.Channel].Latency)
		}
		if instr.Op == program.Send && instr.Sequence >= prog.Channels[instr.Channel].Slots {
			from = max(from, result.End[found[message{program.Free, instr.Channel, instr.Sequence - prog.Channels[instr.Channel].Slots}]])
		}
		if result.Start[i] != from || result.End[i] != from+instr.Ticks {
			t.Fatalf("instruction %d runs from %d to %d, want %d to %d", i, result.Start[i], result.End[i], from, from+instr.Ticks)
		}
	}
	for at, i := range result.Path {
		if at > 0 && result.Start[i] != result.End[result.Path[at-1]] && prog.Instrs[i].Op != program.Recv {
			t.Fatalf("the longest chain has a gap before instruction %d", i)
		}
	}
	if last := result.Path[len(result.Path)-1]; result.Start[result.Path[0]] != 0 || result.End[last] != result.Makespan {
		t.Fatalf("the longest chain is from %d to %d of %d", result.Start[result.Path[0]], result.End[last], result.Makespan)
	}
}
