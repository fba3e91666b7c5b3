package backendtest

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/program"
)

// Compiled returns the job of a family, with its units in equal runs that are assigned to the
// devices round-robin.
func Compiled(family string, wanted costmodel.Workload, devices, runs int) (*executor.Job, error) {
	graph, err := Graph(Families[family])
	if err != nil {
		return nil, err
	}
	return Job(graph, wanted, devices, Runs(devices, runs, nil))
}

// Forms returns programs of every kind, which differ in their waits. They are training of these
// families under every schedule ("train 1f1b" for the first family, "train 1f1b gemma" for
// another), "generate" and "device map". The first family also offloads its activations.
func Forms(families ...string) (map[string]*executor.Job, error) {
	jobs := make(map[string]*executor.Job)
	var all []error
	compile := func(name, family string, wanted costmodel.Workload, devices, runs int) {
		job, err := Compiled(family, wanted, devices, runs)
		jobs[name], all = job, append(all, err)
	}
	for _, schedule := range []costmodel.ScheduleKind{costmodel.GPipe, costmodel.OneFOneB, costmodel.Interleaved, costmodel.ZBH1} {
		wanted := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.Pipeline, Schedule: schedule, Batch: 4, MicroBatches: 4, Seq: 8}
		runs := 1
		if schedule == costmodel.Interleaved {
			wanted.VirtualStages, runs = 2, 2
		}
		for i, family := range families {
			name := fmt.Sprint("train ", schedule)
			if i > 0 {
				name += " " + family
			}
			compile(name, family, wanted, 2, runs)
			if i == 0 {
				offloaded := wanted
				offloaded.OffloadActivations = costmodel.OffloadAll
				compile(name+" offloaded", family, offloaded, 2, runs)
			}
		}
	}
	compile("generate", "qwen3", costmodel.Workload{Mode: costmodel.Infer, Strategy: costmodel.Pipeline, Schedule: costmodel.GPipe, Batch: 4, MicroBatches: 2, Seq: 8, NewTokens: 5}, 3, 1)
	compile("device map", "llama", costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.DeviceMap, Batch: 2, MicroBatches: 1, Seq: 8}, 4, 1)
	return jobs, errors.Join(all...)
}

// InTurn runs a step sequentially, as the reference for a backend's arenas. It runs any instruction
// that can run, one at a time, and copies messages byte by byte. It shares only makes with a
// backend, which does to a device's arena what a computing instruction does. Loads, zeroes and
// unloads do nothing.
func InTurn(of *program.Program, arenas [][]byte, makes func(of *program.Program, index int32, arena []byte)) error {
	done, messages, host := make([]bool, len(of.Instrs)), make(map[[2]int32][]byte), make(map[int32][][]byte)
	for left := len(of.Instrs); left > 0; {
		before := left
		for i := range of.Instrs {
			index, instr := int32(i), &of.Instrs[i]
			message := [2]int32{instr.Channel, instr.Sequence}
			if done[i] || !ready(of, index, done) || instr.Op == program.Recv && messages[message] == nil {
				continue
			}
			done[i] = true
			left--
			switch {
			case instr.Op == program.Send:
				messages[message] = bytes.Clone(touched(of, index, program.Read, arenas))
			case instr.Op == program.Recv:
				into := touched(of, index, program.Write, arenas)
				for rest := into[copy(into, messages[message]):]; len(rest) > 0; rest = rest[1:] {
					rest[0] = executor.Poison
				}
			case instr.Op == program.Store || instr.Op == program.Fetch:
				moves(of, instr, arenas[instr.Device], host)
			case instr.Op.Runs() || instr.Op == program.Step:
				makes(of, index, arenas[instr.Device])
			}
		}
		if left == before {
			return errors.New("nothing can run")
		}
	}
	return nil
}

// moves copies what a store reads to its buffer of host memory, or back.
func moves(of *program.Program, instr *program.Instr, arena []byte, host map[int32][][]byte) {
	var at int32
	var parts [][]byte
	for _, access := range of.Accesses[instr.FirstAccess:instr.EndAccess] {
		if buffer := &of.Buffers[access.Buffer]; buffer.Class == program.Host {
			at = access.Buffer
		} else {
			parts = append(parts, arena[buffer.Offset:buffer.Offset+buffer.Bytes])
		}
	}
	if instr.Op == program.Store {
		host[at] = nil
	}
	for i, part := range parts {
		if instr.Op == program.Store {
			host[at] = append(host[at], bytes.Clone(part))
		} else {
			copy(part, host[at][i])
		}
	}
}

// ready reports whether everything that an instruction waits for is done, and everything before it
// in its stream.
func ready(of *program.Program, index int32, done []bool) bool {
	instr := &of.Instrs[index]
	for before := of.Devices[instr.Device].First; before < index; before++ {
		if !done[before] && of.Instrs[before].Stream == instr.Stream {
			return false
		}
	}
	for _, wait := range of.Waits[instr.FirstWait:instr.EndWait] {
		if !done[wait.Instr] {
			return false
		}
	}
	return true
}

// touched returns the first buffer that an instruction accesses in that mode.
func touched(of *program.Program, index int32, mode program.Mode, arenas [][]byte) []byte {
	instr := &of.Instrs[index]
	for _, access := range of.Accesses[instr.FirstAccess:instr.EndAccess] {
		if buffer := &of.Buffers[access.Buffer]; access.Mode == mode {
			return arenas[buffer.Device][buffer.Offset : buffer.Offset+buffer.Bytes]
		}
	}
	return nil
}
