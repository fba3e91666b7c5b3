package cpu

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/compile"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// tiny is a llama of few numbers, its embedding tied to its head.
func tiny(layers int) map[string]any {
	return map[string]any{
		"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "torch_dtype": "float32",
		"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": layers, "num_attention_heads": 2, "num_key_value_heads": 1,
		"vocab_size": 40, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000, "tie_word_embeddings": true, "hidden_act": "silu",
	}
}

// compiled is the job of a config, its units in equal runs round the devices.
func compiled(tb testing.TB, config map[string]any, wanted costmodel.Workload, runs int) *executor.Job {
	tb.Helper()
	fail := func(err error) {
		if err != nil {
			tb.Helper()
			tb.Fatal(err)
		}
	}
	data, err := json.Marshal(config)
	fail(err)
	file := filepath.Join(tb.TempDir(), "config.json")
	fail(os.WriteFile(file, data, 0o600))
	graph, err := load.Model(file, load.Options{})
	fail(err)
	wanted.Runtime = costmodel.Devmap
	workload, err := estimate.Resolve(graph, wanted)
	fail(err)
	table, err := estimate.Table(graph, workload)
	fail(err)
	topology := &costmodel.Topology{}
	for range wanted.World {
		topology.Devices = append(topology.Devices, costmodel.Device{CapacityBytes: 1 << 40, WorkspaceBytes: 1000, FLOPS: 1e12, Rates: costmodel.Rates{LinkBytesPerSecond: 1e9}})
	}
	placement := make(devicemap.Map, len(graph.Units))
	for unit := range placement {
		placement[unit] = devicemap.Device(unit * runs / len(placement) % int(wanted.World))
	}
	made, err := compile.Program(graph, table, topology, placement, nil)
	fail(err)
	model, err := recipe.Of(graph, &table.Workload)
	fail(err)
	return &executor.Job{Graph: graph, Workload: &table.Workload, Recipe: model, Program: made}
}

// forms are programs of every kind: who waits for whom differs.
func forms(tb testing.TB) map[string]*executor.Job {
	tb.Helper()
	jobs := make(map[string]*executor.Job)
	for _, schedule := range []costmodel.ScheduleKind{costmodel.GPipe, costmodel.OneFOneB, costmodel.Interleaved} {
		for _, world := range []int64{2, 4} {
			wanted := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.Pipeline, Schedule: schedule, World: world, Batch: 4, MicroBatches: 4, Seq: 8}
			runs := int(world)
			if schedule == costmodel.Interleaved {
				wanted.VirtualStages, runs = 2, 2*runs
			}
			jobs[fmt.Sprint("train ", schedule, world)] = compiled(tb, tiny(8), wanted, runs)
		}
	}
	infer := costmodel.Workload{Mode: costmodel.Infer, Strategy: costmodel.Pipeline, Schedule: costmodel.GPipe, World: 3, Batch: 4, MicroBatches: 2, Seq: 8, NewTokens: 5}
	jobs["generate"] = compiled(tb, tiny(4), infer, 3)
	chain := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.DeviceMap, World: 3, Batch: 2, MicroBatches: 1, Seq: 8}
	untied := tiny(4)
	untied["tie_word_embeddings"] = false
	jobs["device map"] = compiled(tb, untied, chain, 3)
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
	for name, job := range forms(t) {
		t.Run(name, func(t *testing.T) {
			want := make([][]byte, len(job.Program.Devices))
			for i := range want {
				want[i] = bytes.Repeat([]byte{executor.Poison}, int(job.Program.Devices[i].Arena))
			}
			inTurn(t, job.Program, want)
			inTurn(t, job.Program, want)
			for _, processors := range []int{1, 2, 4} {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
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
