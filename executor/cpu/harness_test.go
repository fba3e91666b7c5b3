package cpu

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"sync/atomic"
	"testing"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/internal/hostmemory"
	"github.com/devmap-dev/devmap/executor/program"
)

// heap is a backend whose arenas are ordinary memory, which the race detector
// looks at, and that counts how many are held.
type heap struct {
	backend
	reserved atomic.Int64
}

func newHeap() *heap {
	heap := new(heap)
	heap.reserve = func(size int64) ([]byte, error) {
		heap.reserved.Add(1)
		return make([]byte, size), nil
	}
	heap.release = func([]byte) error {
		heap.reserved.Add(-1)
		return nil
	}
	heap.limits = func() []hostmemory.FreeMemory { return nil }
	return heap
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

// opened is a program on a machine whose instructions run no kernels: what they
// do is what a test taps.
func opened(tb testing.TB, backend executor.Backend, program *program.Program) *machine {
	tb.Helper()
	bound := &bind.Bound{Program: program, Recipe: &recipe.Model{Units: []recipe.Unit{{Code: &recipe.Code{}}}}}
	made, err := backend.Open(context.Background(), bound)
	if err != nil {
		tb.Fatal(err)
	}
	machine := of(tb, made)
	machine.instr = func(int32) (bind.Instr, error) { return bind.Instr{Runs: []bind.Run{{}}}, nil }
	return machine
}

// of is what a backend opened; it is closed when the test ends.
func of(tb testing.TB, made executor.Machine) *machine {
	tb.Helper()
	machine, ok := made.(*machine)
	if !ok {
		tb.Fatalf("%T was opened", made)
	}
	tb.Cleanup(func() {
		if err := machine.Close(); err != nil {
			tb.Error(err)
		}
	})
	return machine
}

// toy is a step whose instructions make bytes out of all bytes that they read
// and of what they are: of whatever went another way, other bytes come out.
func toy(machine *machine, before func(index int32) error) *executor.Step {
	step := &executor.Step{Number: 1, Taps: make(map[executor.Tap]func() error)}
	for i := range machine.program.Instrs {
		index := int32(i)
		if op := machine.program.Instrs[index].Op; op.Runs() || op == program.Step {
			step.Taps[executor.Tap{Instr: index}] = func() error {
				err := before(index)
				makes(machine.program, index, machine.arenas[machine.program.Instrs[index].Device])
				return err
			}
		}
	}
	return step
}

// makes is what an instruction of a toy does to its arena.
func makes(of *program.Program, index int32, arena []byte) {
	instr, hash := &of.Instrs[index], fnv.New64a()
	_ = binary.Write(hash, binary.LittleEndian, []int32{int32(instr.Op), instr.MicroBatch, instr.Device, index})
	for _, access := range of.Accesses[instr.FirstAccess:instr.EndAccess] {
		buffer := &of.Buffers[access.Buffer]
		if access.Mode != program.Write {
			hash.Write(arena[buffer.Offset : buffer.Offset+buffer.Bytes])
		}
	}
	for _, access := range of.Accesses[instr.FirstAccess:instr.EndAccess] {
		buffer := &of.Buffers[access.Buffer]
		if access.Mode == program.Read {
			continue
		}
		_ = binary.Write(hash, binary.LittleEndian, access.Buffer)
		for at := buffer.Offset; at < buffer.Offset+buffer.Bytes; at += 8 {
			binary.LittleEndian.PutUint64(arena[at:], hash.Sum64()+uint64(at))
		}
	}
}
