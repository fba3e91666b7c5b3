package cpu

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/program"
)

// TestMessages: a message keeps its bytes when its sender continues, and no one reads a
// slot before its message arrives. A receiver that read the sender's bytes, or did
// not wait, would see poison.
func TestMessages(t *testing.T) {
	const count = 6
	for _, slots := range []int{0, 1, 2, 3} {
		for _, slow := range []int32{0, 1} { // the device that takes its time
			t.Run(fmt.Sprintf("slots %d, device %d is slow", slots, slow), func(t *testing.T) {
				machine := opened(t, &newHeap().backend, parsed(t, backendtest.PassOn(slots, count)))
				step := &executor.Step{Number: 1, Taps: make(map[executor.Tap]func() error)}
				for i := range machine.program.Instrs {
					index, instr := int32(i), &machine.program.Instrs[i]
					step.Taps[executor.Tap{Instr: index}] = func() error {
						if instr.Device == slow {
							time.Sleep(time.Millisecond)
						}
						if instr.Device == 0 {
							fill(machine.arenas[0], executor.Poison) // nothing needs the message before
							runtime.Gosched()
							fill(machine.arenas[0], byte(1+instr.MicroBatch))
							return nil
						}
						from, into := machine.program.Accesses[instr.FirstAccess].Buffer, machine.program.Accesses[instr.FirstAccess+1].Buffer
						at, to := machine.program.Buffers[from].Offset, machine.program.Buffers[into].Offset
						copy(machine.arenas[1][to:to+256], machine.arenas[1][at:at+256])
						return nil
					}
				}
				for range 3 {
					fill(machine.arenas[1], executor.Poison)
					if _, err := machine.Step(context.Background(), step); err != nil {
						t.Fatal(err)
					}
					for i := range count {
						got := make([]byte, 256)
						if err := machine.Read(1, int64(256*(max(slots, 1)+i)), got); err != nil {
							t.Fatal(err)
						}
						if want := bytes.Repeat([]byte{byte(1 + i)}, 256); !bytes.Equal(got, want) {
							t.Errorf("message %d arrived as %x…, want %x…", i, got[:4], want[:4])
						}
					}
				}
			})
		}
	}
}

// A message that is smaller than its slot leaves poison after its end, not what the
// slot held before.
func TestMessageSmallerThanItsSlot(t *testing.T) {
	machine := opened(t, &newHeap().backend, parsed(t, `
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
	for device := range machine.arenas {
		if err := machine.Fill(device, 0, 256, 0); err != nil {
			t.Fatal(err)
		}
	}
	fill(machine.arenas[1], 7)
	seen := false
	_, err := machine.Step(context.Background(), &executor.Step{Fence: func(index int32) error {
		seen = machine.program.Instrs[index].Op == program.Fence
		return nil
	}})
	want := append(make([]byte, 256), bytes.Repeat([]byte{executor.Poison}, 256)...)
	if err != nil || !seen || !bytes.Equal(machine.arenas[1], want) {
		t.Errorf("error %v, fence %v, slot %x", err, seen, machine.arenas[1])
	}
}

// Slots are freed in whatever order they are done with.
func TestFreedOutOfOrder(t *testing.T) {
	machine := opened(t, &newHeap().backend, parsed(t, `
device 0 arena 1024 budget 1024
device 1 arena 512 budget 512
channel act[1] 0>1 slots 2 bytes 256
buffer 0 out[0] 0 +256 stream
buffer 0 out[1] 256 +256 stream
buffer 0 out[2] 512 +256 stream
buffer 0 out[3] 768 +256 stream
buffer 1 slot[0] 0 +256 slot
buffer 1 slot[1] 256 +256 slot
0.0 compute zero >out[0]
0.1 compute zero >out[1]
0.2 compute zero >out[2]
0.3 compute zero >out[3]
0.4 compute send act[1]#0 out[0]
0.5 compute send act[1]#1 out[1]
0.6 compute send act[1]#2 out[2]
0.7 compute send act[1]#3 out[3]
1.0 compute recv act[1]#0 >slot[0]
1.1 compute recv act[1]#1 >slot[1]
1.2 compute fence slot[1]
1.3 compute free act[1]#1
1.4 compute fence slot[0]
1.5 compute free act[1]#0
1.6 compute recv act[1]#2 >slot[0]
1.7 compute fence slot[0]
1.8 compute free act[1]#2
1.9 compute recv act[1]#3 >slot[1]
1.10 compute fence slot[1]
1.11 compute free act[1]#3
`))
	for i := range 4 {
		if err := machine.Fill(0, int64(256*i), 256, byte(10+i)); err != nil {
			t.Fatal(err)
		}
	}
	var seen []byte
	_, err := machine.Step(context.Background(), &executor.Step{Fence: func(index int32) error {
		time.Sleep(time.Millisecond) // whoever sent too early would have overwritten it
		seen = append(seen, machine.touchedBy(index)[0])
		return nil
	}})
	if want := []byte{11, 10, 12, 13}; err != nil || !bytes.Equal(seen, want) {
		t.Errorf("error %v, fences saw %d, want %d", err, seen, want)
	}
}

// touchedBy is the buffer that a fence reads.
func (machine *machine) touchedBy(index int32) []byte {
	buffer := &machine.program.Buffers[machine.program.Accesses[machine.program.Instrs[index].FirstAccess].Buffer]
	return machine.arenas[buffer.Device][buffer.Offset : buffer.Offset+buffer.Bytes]
}
