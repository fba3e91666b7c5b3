package simulate_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/simulate"
)

var torchCell = regexp.MustCompile(`^(\d)(F|B|SEND_F|SEND_B|RECV_F|RECV_B)(\d)$`)

// lowered makes a program of rows as torch.distributed.pipelining lowers them, one
// a rank: stage, action, micro-batch. A receive frees its slot at once, as torch
// has a buffer of its own for every micro-batch.
func lowered(t *testing.T, slots int32, rows ...string) *program.Program {
	t.Helper()
	prog := &program.Program{Routines: make([]program.Routine, 4)}
	next := map[program.Instr]int32{} // the sequence of a channel's end
	for rank, row := range rows {
		device := program.Device{ID: int32(rank), Streams: []string{"compute"}, First: int32(len(prog.Instrs))}
		for cell := range strings.FieldsSeq(row) {
			parts := torchCell.FindStringSubmatch(cell)
			if parts == nil {
				t.Fatalf("%q is no cell", cell)
			}
			instr := cellOf(prog, slots, int32(parts[1][0]-'0'), parts[2])
			instr.Device = int32(rank)
			if instr.Channel >= 0 {
				end := instr
				instr.Sequence = next[end]
				next[end]++
			} else {
				instr.MicroBatch = int32(parts[3][0] - '0')
			}
			prog.Instrs = append(prog.Instrs, instr)
			if instr.Op == program.Recv {
				instr.Op = program.Free
				prog.Instrs = append(prog.Instrs, instr)
			}
		}
		device.End = int32(len(prog.Instrs))
		prog.Devices = append(prog.Devices, device)
	}
	return prog
}

// cellOf is what a stage does; a message is on the channel of its direction to the
// stage that takes it.
func cellOf(prog *program.Program, slots, stage int32, action string) program.Instr {
	back := strings.HasSuffix(action, "B")
	instr := program.Instr{Op: program.Forward, Routine: stage, Channel: program.None}
	if back {
		instr.Op = program.Backward
	}
	if len(action) == 1 {
		return instr
	}
	name := fmt.Sprint("act", stage+1)
	instr.Op, instr.Routine, instr.MicroBatch = program.Send, program.None, program.None
	switch {
	case action[:4] == "RECV" && back:
		name, instr.Op = fmt.Sprint("grad", stage), program.Recv
	case action[:4] == "RECV":
		name, instr.Op = fmt.Sprint("act", stage), program.Recv
	case back:
		name = fmt.Sprint("grad", stage-1)
	}
	index := slices.IndexFunc(prog.Channels, func(channel program.Channel) bool { return channel.Name == name })
	if index < 0 {
		index = len(prog.Channels)
		prog.Channels = append(prog.Channels, program.Channel{Name: name, Slots: slots})
	}
	instr.Channel = int32(index)
	return instr
}

// TestTorchHangs: the two sequences of github.com/pytorch/pytorch/issues/172668
// that hung, what the thread leaves out completed, do so where a send waits for
// its receive, and end with one slot a channel.
func TestTorchHangs(t *testing.T) {
	for _, rows := range [][]string{
		{
			"0F0 0SEND_F0 0F1 0SEND_F1 2RECV_F0 2F0 2SEND_F0 2RECV_F1 2F1 2SEND_F1",
			"1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1 1SEND_F1 3RECV_F0 3F0 3RECV_F1 3F1",
		},
		{
			"0F0 0SEND_F0 0F1 0SEND_F1 2RECV_F0 2F0 2SEND_F0 2RECV_F1 2F1 2SEND_F1 0F2 0SEND_F2 2RECV_B0 2B0 2SEND_B0 2RECV_B1 2B1 2SEND_B1 0RECV_B0 0B0 0RECV_B1 0B1 2RECV_F2 2F2 2SEND_F2 2RECV_B2 2B2 2SEND_B2 0RECV_B2 0B2",
			"1RECV_F0 1F0 1RECV_F1 1SEND_F0 1F1 3RECV_F0 1SEND_F1 3F0 3B0 3RECV_F1 3SEND_B0 3F1 3B1 1RECV_F2 3SEND_B1 1F2 1SEND_F2 1RECV_B0 1B0 1SEND_B0 1RECV_B1 1B1 1SEND_B1 3RECV_F2 3F2 3B2 3SEND_B2 1RECV_B2 1B2 1SEND_B2",
		},
	} {
		var deadlock *simulate.DeadlockError
		if _, err := simulate.Run(lowered(t, 0, rows...)); !errors.As(err, &deadlock) || len(deadlock.Blocked) != 2 {
			t.Errorf("slots 0: %v; want two streams that wait for each other", err)
		}
		for slots := int32(1); slots <= 2; slots++ {
			run(t, lowered(t, slots, rows...))
		}
	}
}

// TestDeadlocksChecked: of pipelines whose lines are exchanged at random a program
// does not end exactly where the check finds a cycle.
func TestDeadlocksChecked(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 6))
	ended, stuck := 0, 0
	for range 2000 {
		kind := costmodel.Schedule{Kind: costmodel.OneFOneB, Stages: 2 + random.Int64N(3), Chunks: 1, MicroBatches: 1 + random.Int64N(4)}
		prog := schedule(kind, int32(random.IntN(3)), costs{1, 2, 1, 1})
		for range 1 + random.IntN(2) {
			exchangeLines(random, prog)
		}
		_, err := simulate.Run(prog)
		cycle := slices.ContainsFunc(prog.Check().Faults, func(fault program.Fault) bool { return fault.Rule == "V6" })
		if (err != nil) != cycle {
			t.Fatalf("%v: played: %v; the check finds a cycle: %v", kind, err, cycle)
		}
		if err == nil {
			ended++
		} else {
			stuck++
		}
	}
	if min(ended, stuck) < 200 {
		t.Errorf("%d end, %d do not: too few to tell", ended, stuck)
	}
}

// exchangeLines exchanges two lines of one stream that are near each other, and
// what others wait for with them.
func exchangeLines(random *rand.Rand, prog *program.Program) {
	one := random.IntN(len(prog.Instrs))
	other := one + 1 + random.IntN(4)
	if other >= len(prog.Instrs) || prog.Instrs[one].Device != prog.Instrs[other].Device || prog.Instrs[one].Stream != prog.Instrs[other].Stream {
		return
	}
	prog.Instrs[one], prog.Instrs[other] = prog.Instrs[other], prog.Instrs[one]
	for i := range prog.Waits {
		switch int(prog.Waits[i].Instr) {
		case one:
			prog.Waits[i].Instr = int32(other)
		case other:
			prog.Waits[i].Instr = int32(one)
		}
	}
}
