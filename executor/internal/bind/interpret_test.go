package bind_test

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/internal/recipetest"
	"github.com/devmap-dev/devmap/executor/program"
)

// interpreter runs a program in float64, one instruction at a time, in any
// order that its streams, waits and channels allow.
type interpreter struct {
	t      *testing.T
	name   string
	job    *executor.Job
	bound  *bind.Bound
	arenas []*memory
	done   []bool
	// Messages of each channel that were sent, received and freed.
	sent, received, freed []int32
	// seen is what fences show: of generation ids and logits by round and
	// micro-batch, of training losses.
	seen  map[string][]float64
	round map[int32]int
}

// interpret returns what a program shows, and what it leaves of every parameter.
func interpret(t *testing.T, name string, job *executor.Job, random *rand.Rand) map[string][]float64 {
	t.Helper()
	bound, err := bind.New(job.Graph, job.Workload, job.Recipe, job.Program)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	channels := len(job.Program.Channels)
	interpreter := &interpreter{
		t: t, name: name, job: job, bound: bound, done: make([]bool, len(job.Program.Instrs)), seen: make(map[string][]float64), round: make(map[int32]int),
		sent: make([]int32, channels), received: make([]int32, channels), freed: make([]int32, channels),
	}
	for index := range job.Program.Devices {
		interpreter.arenas = append(interpreter.arenas, newMemory(job.Program.Devices[index].Arena))
	}
	interpreter.load()
	interpreter.run(random)
	for _, param := range bound.Params() {
		key := string(param.Kind) + " " + param.Name
		values := interpreter.arenas[param.Device].load(areaOf(&param))
		if known, ok := interpreter.seen[key]; ok && !equal(known, values) {
			t.Fatalf("%s: %s is not the same on two devices", name, key)
		}
		interpreter.seen[key] = values
	}
	return interpreter.seen
}

func areaOf(param *bind.Param) *bind.Area {
	return &bind.Area{Offset: param.Offset, DType: param.DType, Rows: param.Rows, Columns: param.Columns, Stride: param.Columns}
}

func equal(one, other []float64) bool {
	return slices.EqualFunc(one, other, func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })
}

// load gives every parameter values by its name, and feeds ids.
func (interpreter *interpreter) load() {
	for _, param := range interpreter.bound.Params() {
		values := make([]float64, param.Rows*param.Columns)
		if param.Kind == bind.Weight || param.Kind == bind.Master {
			hash := fnv.New64a()
			_, _ = hash.Write([]byte(param.Name))
			random := rand.New(rand.NewPCG(hash.Sum64(), 1))
			for i := range values {
				values[i] = 0.5 * random.NormFloat64()
			}
		}
		interpreter.arenas[param.Device].store(areaOf(&param), values)
	}
	for _, feed := range interpreter.bound.Feeds() {
		for i := range feed.Rows * feed.Columns {
			id := float64(i * i % 7)
			if feed.Name == "types" {
				id = 0
			}
			interpreter.arenas[feed.Device].put(feed.Offset+4*i, 4, id)
		}
	}
}

// run runs instructions until none is left.
func (interpreter *interpreter) run(random *rand.Rand) {
	prog := interpreter.job.Program
	var queues [][]int32
	for index := range prog.Devices {
		device := &prog.Devices[index]
		streams := make([][]int32, len(device.Streams))
		for instr := device.First; instr < device.End; instr++ {
			stream := prog.Instrs[instr].Stream
			streams[stream] = append(streams[stream], instr)
		}
		queues = append(queues, streams...)
	}
	for left := len(prog.Instrs); left > 0; {
		var ready []int
		for at, queue := range queues {
			if len(queue) > 0 && interpreter.ready(queue[0]) {
				ready = append(ready, at)
			}
		}
		if len(ready) == 0 {
			interpreter.t.Fatalf("%s: %d instructions are left, and none can run", interpreter.name, left)
		}
		at := ready[random.IntN(len(ready))]
		interpreter.instr(queues[at][0])
		interpreter.done[queues[at][0]] = true
		queues[at] = queues[at][1:]
		left--
	}
}

func (interpreter *interpreter) ready(index int32) bool {
	prog := interpreter.job.Program
	instr := &prog.Instrs[index]
	for _, wait := range prog.Waits[instr.FirstWait:instr.EndWait] {
		if !interpreter.done[wait.Instr] {
			return false
		}
	}
	switch instr.Op {
	case program.Send:
		return instr.Sequence < interpreter.freed[instr.Channel]+prog.Channels[instr.Channel].Slots
	case program.Recv:
		return instr.Sequence < interpreter.sent[instr.Channel]
	default:
		return true
	}
}

// instr carries one out.
func (interpreter *interpreter) instr(index int32) {
	prog := interpreter.job.Program
	instr := &prog.Instrs[index]
	arena := interpreter.arenas[instr.Device]
	switch instr.Op {
	case program.Send:
		channel := &prog.Channels[instr.Channel]
		from := &prog.Buffers[prog.Accesses[instr.FirstAccess].Buffer]
		slot := interpreter.slot(instr.Channel, instr.Sequence)
		interpreter.arenas[channel.To].move(slot, arena, from.Offset, from.Bytes)
		interpreter.sent[instr.Channel]++
	case program.Recv:
		interpreter.received[instr.Channel]++
	case program.Free:
		// The contents of the slot are gone.
		arena.end(interpreter.slot(instr.Channel, instr.Sequence), prog.Channels[instr.Channel].Bytes)
		interpreter.freed[instr.Channel]++
	case program.Forward, program.Recompute, program.Backward, program.BackwardInput, program.BackwardWeight, program.Decode, program.Step:
		// A buffer that it overwrites loses all contents.
		for _, access := range prog.Accesses[instr.FirstAccess:instr.EndAccess] {
			if buffer := &prog.Buffers[access.Buffer]; access.Mode == program.Write {
				arena.end(buffer.Offset, buffer.Bytes)
			}
		}
		interpreter.runs(index, arena)
	default:
	}
}

func (interpreter *interpreter) slot(channel, sequence int32) int64 {
	made := &interpreter.job.Program.Channels[channel]
	name := fmt.Sprintf("%s.slot[%d]", made.Name, sequence%made.Slots)
	for index := range interpreter.job.Program.Buffers {
		if buffer := &interpreter.job.Program.Buffers[index]; buffer.Device == made.To && buffer.Name == name {
			return buffer.Offset
		}
	}
	interpreter.t.Fatalf("%s: no %s", interpreter.name, name)
	return 0
}

func (interpreter *interpreter) runs(index int32, arena *memory) {
	bound, err := interpreter.bound.Instr(index)
	if err != nil {
		interpreter.t.Fatalf("%s: %v", interpreter.name, err)
	}
	if norms := bound.Norms; norms != nil {
		for i := range norms.Count {
			value := 0.
			if norms.From >= 0 {
				value = arena.get(norms.From+4*i, 4)
			}
			arena.put(norms.To+4*i, 4, value)
		}
	}
	if total := bound.Total; total != nil {
		sum := 0.
		for i := range total.Count {
			sum += arena.get(total.From+4*i, 4)
		}
		arena.put(total.To, 4, sum)
		interpreter.seen["total"] = []float64{sum}
	}
	for number := range bound.Runs {
		run := &bound.Runs[number]
		for _, copied := range run.Before {
			arena.move(copied.To, arena, copied.From, copied.Bytes)
		}
		for at := range run.Kernels {
			interpreter.kernel(index, run, &run.Kernels[at], arena)
		}
		for _, copied := range run.After {
			arena.move(copied.To, arena, copied.From, copied.Bytes)
		}
	}
}

// kernel runs a kernel on the values in the arena. It fails the test if one that the kernel reads
// is missing.
func (interpreter *interpreter) kernel(index int32, run *bind.Run, kernel *recipe.Kernel, arena *memory) {
	where := func() string {
		return fmt.Sprintf("%s: %s %v %s", interpreter.name, interpreter.job.Program.Place(index), interpreter.job.Program.Instrs[index].Op, kernel.Name)
	}
	call := &recipetest.Call{Kernel: kernel, Past: run.Past, Begins: run.Begins, Step: 1, Uses: make([][]recipetest.Matrix, len(kernel.Operands))}
	call.Optimizer = recipetest.Optimizer{Rate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.1, Clip: 1}
	areas := make([]bind.Area, len(kernel.Operands))
	for i := range kernel.Operands {
		operand := &kernel.Operands[i]
		areas[i] = run.Area(operand)
		tensor := &interpreter.job.Recipe.Units[run.Unit].Code.Tensors[operand.Tensor]
		values := arena.load(&areas[i])
		reads := operand.Mode == ' ' || operand.Mode == '+' || operand.Mode == '*' && !run.Begins
		if reads && !partly(tensor) && slices.ContainsFunc(values, math.IsNaN) {
			interpreter.t.Fatalf("%s reads %s %q, which is not there whole", where(), tensor.Class, tensor.Name)
		}
		call.Operands = append(call.Operands, recipetest.Matrix{Values: values, Rows: areas[i].Rows, Columns: areas[i].Columns, Stride: areas[i].Columns})
		if run.Uses == nil {
			continue
		}
		for _, offset := range run.Uses[operand.Tensor] {
			use := areas[i]
			use.Offset = offset
			values := arena.load(&use)
			if slices.ContainsFunc(values, math.IsNaN) {
				interpreter.t.Fatalf("%s reads a use of %q, which is not there whole", where(), tensor.Name)
			}
			call.Uses[i] = append(call.Uses[i], recipetest.Matrix{Values: values, Rows: use.Rows, Columns: use.Columns, Stride: use.Columns})
		}
	}
	share(call.Operands, areas)
	call.Run(interpreter.t)
	for i := range kernel.Operands {
		if kernel.Operands[i].Mode == ' ' {
			continue
		}
		if slices.ContainsFunc(call.Operands[i].Values, math.IsNaN) && !partly(&interpreter.job.Recipe.Units[run.Unit].Code.Tensors[kernel.Operands[i].Tensor]) {
			interpreter.t.Fatalf("%s leaves %s unwritten", where(), kernel.Operands[i].Role)
		}
		arena.store(&areas[i], call.Operands[i].Values)
		interpreter.show(index, run, &kernel.Operands[i], call.Operands[i].Values)
	}
}

// partly reports tensors that are not written whole: keys and values of tokens
// to come, the label's
// logit of tokens without one, room to sort in.
func partly(tensor *recipe.Tensor) bool {
	return tensor.Class == "cache" || tensor.Name == "softmax" || tensor.Name == "order.work"
}

// share gives operands that lie at the same place the same values.
func share(operands []recipetest.Matrix, areas []bind.Area) {
	for i := range operands {
		for j := range i {
			if areas[i] == areas[j] {
				operands[i].Values = operands[j].Values
			}
		}
	}
}

// show notes results.
func (interpreter *interpreter) show(index int32, run *bind.Run, operand *recipe.Operand, values []float64) {
	tensor := &interpreter.job.Recipe.Units[run.Unit].Code.Tensors[operand.Tensor]
	if tensor.Class != "result" {
		return
	}
	microBatch := interpreter.job.Program.Instrs[index].MicroBatch
	key := fmt.Sprintf("%s of micro-batch %d", tensor.Name, microBatch)
	if interpreter.job.Workload.Mode == costmodel.Infer {
		key += fmt.Sprintf(", past %d, %v", run.Past, interpreter.job.Program.Instrs[index].Op)
	}
	interpreter.seen[key] = slices.Clone(values)
}
