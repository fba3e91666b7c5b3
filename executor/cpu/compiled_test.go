package cpu

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/program"
)

// compiled is the job of a family, its units in equal runs round the devices.
func compiled(tb testing.TB, family string, wanted costmodel.Workload, devices, runs int) *executor.Job {
	tb.Helper()
	graph, err := backendtest.Graph(backendtest.Families[family])
	if err != nil {
		tb.Fatal(err)
	}
	job, err := backendtest.Job(graph, wanted, devices, backendtest.Runs(devices, runs, nil))
	if err != nil {
		tb.Fatal(err)
	}
	return job
}

// forms are programs of every kind: who waits for whom differs.
func forms(tb testing.TB) map[string]*executor.Job {
	tb.Helper()
	jobs := make(map[string]*executor.Job)
	for _, schedule := range []costmodel.ScheduleKind{costmodel.GPipe, costmodel.OneFOneB, costmodel.Interleaved} {
		for _, family := range []string{"llama-tied", "gemma3_text"} {
			wanted := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.Pipeline, Schedule: schedule, Batch: 4, MicroBatches: 4, Seq: 8}
			runs := 1
			if schedule == costmodel.Interleaved {
				wanted.VirtualStages, runs = 2, 2
			}
			jobs[fmt.Sprint("train ", schedule, family)] = compiled(tb, family, wanted, 2, runs)
		}
	}
	infer := costmodel.Workload{Mode: costmodel.Infer, Strategy: costmodel.Pipeline, Schedule: costmodel.GPipe, Batch: 4, MicroBatches: 2, Seq: 8, NewTokens: 5}
	jobs["generate"] = compiled(tb, "qwen3", infer, 3, 1)
	chain := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.DeviceMap, Batch: 2, MicroBatches: 1, Seq: 8}
	jobs["device map"] = compiled(tb, "llama", chain, 4, 1)
	return jobs
}

// inTurn carries a program out with one hand: an instruction at a time, whichever
// can run, a message by its bytes. It shares nothing with the machine but what
// an instruction of a toy does.
func inTurn(tb testing.TB, of *program.Program, arenas [][]byte) {
	tb.Helper()
	bytesOf := func(index int32, mode program.Mode) (all []byte, at int64, device int32) {
		instr := &of.Instrs[index]
		for _, access := range of.Accesses[instr.FirstAccess:instr.EndAccess] {
			if buffer := &of.Buffers[access.Buffer]; access.Mode == mode {
				return arenas[buffer.Device][buffer.Offset : buffer.Offset+buffer.Bytes], buffer.Offset, buffer.Device
			}
		}
		return nil, 0, 0
	}
	done, messages := make([]bool, len(of.Instrs)), make(map[[2]int32][]byte)
	for left := len(of.Instrs); left > 0; {
		before := left
		for i := range of.Instrs {
			index, instr := int32(i), &of.Instrs[i]
			ready := !done[i]
			for j := of.Devices[instr.Device].First; j < index && ready; j++ {
				ready = done[j] || of.Instrs[j].Stream != instr.Stream
			}
			for _, wait := range of.Waits[instr.FirstWait:instr.EndWait] {
				ready = ready && done[wait.Instr]
			}
			key := [2]int32{instr.Channel, instr.Sequence}
			if ready && instr.Op == program.Recv {
				_, ready = messages[key]
			}
			if !ready {
				continue
			}
			done[i] = true
			left--
			switch {
			case instr.Op == program.Send:
				sent, _, _ := bytesOf(index, program.Read)
				messages[key] = bytes.Clone(sent)
			case instr.Op == program.Recv:
				into, _, _ := bytesOf(index, program.Write)
				fill(into[copy(into, messages[key]):], executor.Poison)
			case instr.Op.Runs() || instr.Op == program.Step:
				makes(of, index, arenas[instr.Device])
			}
		}
		if left == before {
			tb.Fatal("nothing can run")
		}
	}
}

// Every way of running a program at once gives the bytes of running it in turn,
// step after step, whatever the number of processors.
func TestStepsAreOne(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for name, job := range forms(t) {
		t.Run(name, func(t *testing.T) {
			want := make([][]byte, len(job.Program.Devices))
			for i := range want {
				want[i] = bytes.Repeat([]byte{executor.Poison}, int(job.Program.Devices[i].Arena))
			}
			inTurn(t, job.Program, want)
			inTurn(t, job.Program, want)
			for _, processors := range []int{1, 2, 4} {
				runtime.GOMAXPROCS(processors)
				machine := opened(t, &newHeap().backend, job.Program)
				for range 2 {
					if _, err := machine.Step(context.Background(), toy(machine, func(int32) error {
						runtime.Gosched()
						return nil
					})); err != nil {
						t.Fatal(err)
					}
				}
				for i := range want {
					if !bytes.Equal(machine.arenas[i], want[i]) {
						t.Errorf("%d processors: device %d has other bytes", processors, i)
					}
				}
			}
		})
	}
}
