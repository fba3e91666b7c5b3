//go:build cuda && linux && cgo && amd64

package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/blas"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/cuda/internal/transfer"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
)

// New is the GPUs' backend. The driver is not looked for before Open.
func New(options Options) (executor.Backend, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	if options.Patience == 0 {
		options.Patience = 30 * time.Second
	}
	kernels, err := kernel.Table()
	if err != nil {
		return nil, err
	}
	return &backend{options, kernels, (*bind.Bound).Instr, transfer.Parts, transfer.PartSize}, nil
}

type backend struct {
	options Options
	kernels map[string]kernel.Func
	instr   func(bound *bind.Bound, index int32) (bind.Instr, error)
	// The ring has so many parts of so many bytes.
	parts, partSize int
}

func (*backend) Name() string { return "cuda" }

// Open takes part in the GPUs' contexts, loads kernels, looks at what is free
// then, and only when all arenas find room maps the first. Then it makes everything
// that steps use, sends bytes over every path, and runs every kernel once.
func (backend *backend) Open(ctx context.Context, bound *bind.Bound) (executor.Machine, error) {
	machine := &machine{
		backend: backend, program: bound.Program, bound: bound, order: orderOf(bound.Program),
	}
	err := machine.find()
	for _, part := range []func() error{
		machine.start, machine.measure, machine.room, machine.connect, machine.reserve, machine.stage, machine.marks,
		machine.trials, machine.keep, machine.warm, machine.prime, machine.dig, machine.ready, ctx.Err,
	} {
		if err == nil {
			err = part()
		}
	}
	if err != nil {
		return nil, errors.Join(err, machine.Close())
	}
	return machine, nil
}

// find gives every device of the program its GPU.
func (machine *machine) find() error {
	_, _ = unused() // before the driver is there: what it says is asked for again
	if err := driver.Open(); err != nil {
		return err
	}
	gpus, err := driver.Devices()
	if err != nil {
		return err
	}
	asked := machine.backend.options.Devices
	if len(asked) != 0 && len(asked) != len(machine.program.Devices) {
		return fmt.Errorf("%d GPUs are named for a program of %d devices: name one for each", len(asked), len(machine.program.Devices))
	}
	machine.ring = transfer.New(machine.backend.parts, machine.backend.partSize)
	shared := make(map[int]*gpu)
	for i := range machine.program.Devices {
		ordinal := i
		if len(asked) != 0 {
			ordinal = asked[i]
		}
		if ordinal < 0 || ordinal >= len(gpus) {
			return fmt.Errorf("device %d is to be on GPU %d, and the driver shows %d", machine.program.Devices[i].ID, ordinal, len(gpus))
		}
		if shared[ordinal] == nil {
			shared[ordinal] = &gpu{Device: &gpus[ordinal]}
			machine.gpus = append(machine.gpus, shared[ordinal])
		}
		machine.devices = append(machine.devices, newDevice(&machine.program.Devices[i], shared[ordinal]))
	}
	return nil
}

// start begins every device's thread, and loads kernels once a GPU.
func (machine *machine) start() error {
	for _, device := range machine.devices {
		if err := device.start(machine.ring); err != nil {
			return err
		}
	}
	return nil
}

// room looks for room on every GPU, whatever takes the rest of it.
func (machine *machine) room() error {
	for _, gpu := range machine.gpus {
		if err := machine.roomOn(gpu); err != nil {
			return err
		}
	}
	return nil
}

func (machine *machine) roomOn(gpu *gpu) error {
	var need int64
	for _, device := range machine.on(gpu) {
		need = min(need+gpu.whole(device.plan.Arena), 1<<62)
	}
	var free int64
	err := machine.on(gpu)[0].do(func() (err error) {
		free, _, err = driver.Room()
		return err
	})
	for _, device := range machine.on(gpu) { // what was mapped already was room
		if device.arena != nil {
			free += device.arena.Bytes
		}
	}
	left := free
	for _, device := range machine.on(gpu) {
		if left -= gpu.whole(device.plan.Arena); err == nil && left < 0 {
			err = &executor.RoomError{Device: device.plan.ID, Need: need, Free: free, Place: gpu.place()}
		}
	}
	return err
}

// index is a device's number.
func (machine *machine) index(device *device) int { return slices.Index(machine.devices, device) }

// on are the devices of a GPU.
func (machine *machine) on(gpu *gpu) (all []*device) {
	for _, device := range machine.devices {
		if device.gpu == gpu {
			all = append(all, device)
		}
	}
	return all
}

// reserve maps every arena, for its own GPU and those that send into it.
func (machine *machine) reserve() error {
	for i, device := range machine.devices {
		err := machine.allot("cuMemCreate")
		if err == nil {
			err = device.do(func() error { return device.reserve(machine.senders(device)) })
		}
		for j := range machine.program.Buffers {
			if buffer := &machine.program.Buffers[j]; err == nil && int(buffer.Device) == i && buffer.Class == program.Workspace {
				device.workspace = blas.Workspace{Address: device.at(buffer.Offset), Bytes: buffer.Bytes}
			}
		}
		var told *driver.Error
		if errors.As(err, &told) && told.Code == driver.OutOfMemory {
			return errors.Join(machine.roomOn(device.gpu), fmt.Errorf("device %d on %s: %w", device.plan.ID, device.gpu.place(), err))
		}
		if err != nil {
			return fmt.Errorf("device %d on %s: %w", device.plan.ID, device.gpu.place(), err)
		}
	}
	return nil
}

// allot counts what is given memory, and refuses the one that was to find none.
func (machine *machine) allot(call string) error {
	machine.allotted++
	if machine.backend.options.Fault == (Fault{FailMap, machine.allotted}) {
		return &driver.Error{Call: call + ", which was to fail", Code: driver.OutOfMemory}
	}
	return nil
}

// pin gets page-locked memory.
func (machine *machine) pin(bytes int64) (*driver.Pinned, error) {
	if err := machine.allot("cuMemHostAlloc"); err != nil {
		return nil, err
	}
	return driver.Pin(bytes)
}

// marks makes the events that instructions are known by.
func (machine *machine) marks() error {
	machine.events = make([]marks, len(machine.program.Instrs))
	waited := make([]bool, len(machine.program.Instrs))
	for i := range machine.program.Instrs {
		instr := &machine.program.Instrs[i]
		for _, wait := range machine.program.Waits[instr.FirstWait:instr.EndWait] {
			waited[wait.Instr] = waited[wait.Instr] || machine.order.of[wait.Instr] != machine.order.of[i]
		}
	}
	for i, device := range machine.devices {
		err := device.do(func() error {
			last := make(map[int32]int32) // by stream: its line before
			for index := machine.program.Devices[i].First; index < machine.program.Devices[i].End; index++ {
				before, known := last[machine.order.of[index]]
				last[machine.order.of[index]] = index
				if err := machine.mark(index, waited[index], known && machine.follows(index, before)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// follows reports an instruction that begins when the one before it in its stream
// ends: both compute, and it waits for nothing else. It needs no event of its
// beginning: an event takes a GPU a microsecond or two between kernels of three.
func (machine *machine) follows(index, before int32) bool {
	instr := &machine.program.Instrs[index]
	for _, wait := range machine.program.Waits[instr.FirstWait:instr.EndWait] {
		if machine.order.of[wait.Instr] != machine.order.of[index] {
			return false
		}
	}
	return machine.computes(before)
}

func (machine *machine) mark(index int32, waited, follows bool) (err error) {
	instr, made := &machine.program.Instrs[index], &machine.events[index]
	computes := machine.computes(index)
	meets := instr.Channel >= 0 && machine.program.Channels[instr.Channel].Slots == 0
	if computes && !follows {
		if made.began, err = driver.NewEvent(true); err != nil {
			return err
		}
	}
	if instr.Op == program.Recv && meets {
		if made.came, err = driver.NewEvent(false); err != nil {
			return err
		}
	}
	if computes || waited || instr.Op == program.Send || instr.Op == program.Fence || instr.Op == program.Free && !meets {
		made.ended, err = driver.NewEvent(computes)
	}
	return err
}

// computes reports an instruction that runs kernels.
func (machine *machine) computes(index int32) bool {
	op := machine.program.Instrs[index].Op
	return op.Runs() || op == program.Step
}
