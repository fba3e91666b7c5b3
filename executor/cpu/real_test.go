package cpu

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// loaded is a job on a machine, its weights and ids random, seeded by their names.
func loaded(tb testing.TB, job *executor.Job) (*machine, *bind.Bound) {
	tb.Helper()
	bound := fixtures.Must(bind.New(job.Graph, job.Workload, job.Recipe, job.Program))(tb)
	made := fixtures.Must(New().Open(context.Background(), bound))(tb)
	machine := of(tb, made)
	for i := range job.Program.Instrs {
		instr := &job.Program.Instrs[i]
		for _, access := range job.Program.Accesses[instr.FirstAccess:instr.EndAccess] {
			if buffer := &job.Program.Buffers[access.Buffer]; instr.Op == program.Load || instr.Op == program.Zero {
				clear(machine.arenas[buffer.Device][buffer.Offset : buffer.Offset+buffer.Bytes])
			}
		}
	}
	for _, param := range bound.Params() {
		if param.Kind == bind.Weight || param.Kind == bind.Master {
			write(machine.arenas[param.Device][param.Offset:], &param)
		}
	}
	for _, feed := range bound.Feeds() {
		random, most := rand.New(rand.NewPCG(7, 7)), 40 // labels are the ids
		if feed.Name == "types" {
			most = 2
		}
		for i := range feed.Rows * feed.Columns {
			binary.LittleEndian.PutUint32(machine.arenas[feed.Device][feed.Offset+4*i:], uint32(random.IntN(most)))
		}
	}
	return machine, bound
}

// write draws a parameter: numbers near 1 of a vector, which norms have, else
// small ones.
func write(into []byte, param *bind.Param) {
	hash := fnv.New64a()
	hash.Write([]byte(param.Name))
	random := rand.New(rand.NewPCG(hash.Sum64(), 1))
	for i := range param.Rows * param.Columns {
		value := float32(0.2 * random.NormFloat64())
		if param.Rows == 1 {
			value++
		}
		if param.DType == modelgraph.BF16 {
			binary.LittleEndian.PutUint16(into[2*i:], uint16(math.Float32bits(value)>>16))
			continue
		}
		value = math.Float32frombits(math.Float32bits(value) &^ 0xffff) // a master is its weight
		binary.LittleEndian.PutUint32(into[4*i:], math.Float32bits(value))
	}
}

var adamw = executor.Optimizer{Rate: 1e-2, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.01, Clip: 1}

// trained are the losses of a few steps, and all weights by name.
func trained(tb testing.TB, job *executor.Job, steps int64) (losses []float32, weights map[string][]byte) {
	tb.Helper()
	machine, bound := loaded(tb, job)
	for number := range steps {
		step := &executor.Step{Number: number + 1, Optimizer: adamw}
		step.Fence = func(index int32) error {
			read := machine.touchedBy(index)
			for i := range job.Workload.MicroBatches {
				losses = append(losses, math.Float32frombits(binary.LittleEndian.Uint32(read[4*i:])))
			}
			return nil
		}
		if _, err := machine.Step(context.Background(), step); err != nil {
			tb.Fatal(err)
		}
	}
	weights = make(map[string][]byte)
	for _, param := range bound.Params() {
		size := param.Rows * param.Columns * param.DType.Bits() / 8
		data := bytes.Clone(machine.arenas[param.Device][param.Offset : param.Offset+size])
		name := param.Name + " " + string(param.Kind)
		if first, twice := weights[name]; twice && !bytes.Equal(first, data) {
			tb.Errorf("%s has copies that differ", name)
		}
		weights[name] = data
	}
	return losses, weights
}

// However a model is cut and scheduled, and on however many processors, its
// losses and weights are the same to the bit.
func TestRealStepsAreOne(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for family, precision := range map[string]costmodel.Precision{
		"llama-tied": costmodel.BF16Mixed, "gemma3_text": costmodel.FP32True, "gpt2": costmodel.BF16True,
	} {
		one := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.Pipeline, Schedule: costmodel.GPipe, Batch: 4, MicroBatches: 4, Seq: 8, Precision: precision}
		losses, weights := trained(t, compiled(t, family, one, 1, 1), 3)
		if len(losses) != 12 || losses[8] >= losses[0] {
			t.Errorf("%s, %v: losses %v", family, precision, losses)
		}
		for schedule, runs := range map[costmodel.ScheduleKind]int{costmodel.GPipe: 1, costmodel.OneFOneB: 1, costmodel.Interleaved: 2} {
			many := one
			if many.Schedule = schedule; runs > 1 {
				many.VirtualStages = int64(runs)
			}
			job := compiled(t, family, many, 2, runs)
			for _, processors := range []int{1, 2, 4} {
				runtime.GOMAXPROCS(processors)
				others, other := trained(t, job, 3)
				if !slices.Equal(losses, others) {
					t.Errorf("%s, %v, %v, %d processors: losses %v, want %v", family, precision, schedule, processors, others, losses)
				}
				for name := range weights {
					if !bytes.Equal(weights[name], other[name]) {
						t.Errorf("%s, %v, %v, %d processors: %s has other bits", family, precision, schedule, processors, name)
					}
				}
			}
		}
	}
}
