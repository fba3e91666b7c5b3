//go:build cuda && linux && cgo && amd64

package cuda

import (
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/internal/schedule"
	"github.com/devmap-dev/devmap/executor/program"
)

// works computes instructions, as kernels on their devices' arenas.
type works struct {
	kernels   map[string]kernel.Func
	bound     *bind.Bound
	instr     func(bound *bind.Bound, index int32) (bind.Instr, error)
	trains    bool // the program has backwards
	times     bool // kernels are timed
	scheduler *schedule.Scheduler
	graphs    graphs
	cached    []*prepared // by instruction; nil: it runs no kernels, or is not cached
}

// prepared is the work of an instruction for its stream. It is made once for all instructions that
// do the same to the same buffers, and used in every step.
type prepared struct {
	*schedule.Work
	device *device
	runs   []pass
	total  bool
	found  []finding
	// decodes: the kernels are of a generated token. around: there are copies among them.
	decodes, around bool
	ends            []bind.Stretch // of buffers, which are cleared after the kernels
	placed          bool           // the work is given in a chain, which sets the position itself
}

// pass is the kernels of one unit.
type pass struct {
	calls    []*kernel.Call
	launches []kernel.Launch // of calls
	finite   []kernel.Launch // after the launches
}

// Kernel implements [schedule.Kernels], as Search and Total do. The first kernel of a decode is
// given after the position. From the first kernel on, ids of earlier graphs are not the last ones.
func (made *prepared) Kernel(run, number int) schedule.Call {
	launch := made.runs[run].launches[number]
	if run > 0 || number > 0 {
		return launch
	}
	return func(args *schedule.Args) error {
		made.device.said = nil
		if made.decodes && !made.placed {
			if err := made.device.setPlace(args); err != nil {
				return err
			}
		}
		return launch(args)
	}
}

// setPlace is the call that gives kernels the position of a decode.
func (device *device) setPlace(args *schedule.Args) error {
	return device.kernels.SetPlace(args.Queue, args.Past)
}

// whole returns a call that gives all of the work within a chain.
func (made *prepared) whole() schedule.Call {
	return func(args *schedule.Args) error {
		made.placed = true
		defer func() { made.placed = false }()
		return made.Run(args)
	}
}

func (made *prepared) Search(run int) []schedule.Call { return made.runs[run].finite }

func (made *prepared) Total(total *bind.Total) schedule.Call {
	device := made.device
	return func(args *schedule.Args) error {
		return device.kernels.Total(args.Queue.(*driver.Stream), device.at(total.To), device.at(total.From), total.Count) //nolint:errcheck // there are no others
	}
}

// most is how many kernels are cached, at half a kilobyte each. A step of any model in a few
// micro-batches has fewer. Later instructions are bound when they run.
const most = 1 << 16

// keep prepares the instructions that compute.
func (works *works) keep() error {
	works.cached = make([]*prepared, len(works.bound.Program.Instrs))
	kernels := 0
	return schedule.Keep(works.scheduler, func(index int32) (*prepared, error) {
		if kernels >= most {
			return nil, nil //nolint:nilnil // not cached
		}
		made, err := works.prepare(index)
		if err != nil {
			return nil, err
		}
		for run := range made.runs {
			kernels += len(made.runs[run].calls)
		}
		return made, nil
	}, func(index int32, made *prepared) { works.cached[index] = made })
}

// work returns the work of an instruction in a step. If it was prepared for this step alone, its
// words are free for others once it has ended.
func (works *works) work(index int32) (*schedule.Work, error) {
	if made := works.cached[index]; made != nil {
		return made.Work, nil
	}
	made, err := works.prepare(index)
	if err != nil {
		return nil, err
	}
	ended := made.Ended
	made.Ended = func() *executor.ValueError {
		defer func() {
			for i := range made.found {
				made.device.words.give(made.found[i].word)
			}
		}()
		return ended()
	}
	return made.Work, nil
}

// prepare binds an instruction, finds its addresses, and prepares its kernels: it loads modules,
// finds the algorithms of products, and packs arguments. Call it on the device's thread.
func (works *works) prepare(index int32) (*prepared, error) {
	bound, err := works.instr(works.bound, index)
	if err != nil {
		return nil, err
	}
	device := of(works.scheduler.DeviceOf(index))
	made := &prepared{
		device: device, runs: make([]pass, len(bound.Runs)), total: bound.Total != nil,
		decodes: works.bound.Program.Instrs[index].Op == program.Decode, ends: bound.Unwritten,
	}
	for i := range bound.Runs {
		run := &bound.Runs[i]
		made.around = made.around || len(run.Before) > 0 || len(run.After) > 0
		pass := pass{calls: make([]*kernel.Call, len(run.Kernels)), launches: make([]kernel.Launch, len(run.Kernels))}
		for j := range pass.calls {
			pass.calls[j] = works.call(device, run, j)
			if pass.launches[j], err = kernel.Prepare(works.kernels, pass.calls[j]); err != nil {
				return nil, err
			}
			if works.times {
				pass.launches[j] = device.clock.clocked(pass.calls[j].Kernel, pass.launches[j])
			}
		}
		var found []finding
		if pass.finite, found, err = finite(device, works.bound, run); err != nil {
			return nil, err
		}
		made.runs[i], made.found = pass, append(made.found, found...)
	}
	made.assemble(&bound)
	return made, nil
}

// assemble puts the prepared calls in order.
func (made *prepared) assemble(bound *bind.Instr) {
	made.Work = schedule.NewWork(bound, made.device.lanes.Driver, made)
	made.Ended = made.infinite
}

// infinite returns the first finding in the words of an instruction that has ended, or nil.
func (made *prepared) infinite() (first *executor.ValueError) {
	for i := range made.found {
		found := &made.found[i]
		if value, name := found.consume(); name != "" && first == nil {
			first = &executor.ValueError{Unit: found.unit, Tensor: name, Value: value}
		}
	}
	return first
}

// call returns a kernel with its matrices.
func (works *works) call(device *device, run *bind.Run, number int) *kernel.Call {
	code := &run.Kernels[number]
	call := &kernel.Call{
		Kernel: code, Trains: works.trains, Begins: run.Begins, Kernels: device.kernels, Workspace: device.workspace,
		Operands: make([]kernel.Matrix, len(code.Operands)),
	}
	for i := range code.Operands {
		tensor, area := code.Operands[i].Tensor, run.Area(&code.Operands[i])
		call.Operands[i] = device.matrix(area)
		if len(run.Uses) == 0 || len(run.Uses[tensor]) == 0 {
			continue
		}
		if call.Uses == nil {
			call.Uses = make([][]kernel.Matrix, len(code.Operands))
		}
		for _, offset := range run.Uses[tensor] {
			use := area
			use.Offset += offset - run.Offsets[tensor]
			call.Uses[i] = append(call.Uses[i], device.matrix(use))
		}
	}
	return call
}
