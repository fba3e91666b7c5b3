package simulate

import (
	"math"

	"github.com/devmap-dev/devmap/executor/program"
)

// arenas follows what is live on every device through the instructions as they
// were simulated. What ends by the time at which an instruction starts is gone
// before it takes anything, as what frees it was simulated before: a program without
// times is followed in the order in which its instructions were simulated.
type arenas struct {
	*simulation
	devices []Device
	last    []bool      // by access: none after it touches what the buffer holds now
	live    []int64     // by device
	usage   []bufferUse // by buffer
	leaving []queue     // by device: when what it holds ends; an event's lane is the buffer
}

// bufferUse is what a buffer holds.
type bufferUse struct {
	live    bool
	arrived bool  // with its send, before the recv that writes it
	until   int64 // the latest end of an access so far
}

// memory fills in what the devices hold.
func (sim *simulation) memory(devices []Device) {
	prog := sim.prog
	all := arenas{sim, devices, sim.lastAccesses(), make([]int64, len(devices)), make([]bufferUse, len(prog.Buffers)), make([]queue, len(devices))}
	for i := range prog.Buffers {
		if buffer := &prog.Buffers[i]; buffer.Class.Throughout() {
			all.live[buffer.Device] += buffer.Bytes
		}
	}
	for device := range devices {
		devices[device].Memory = make([]Moment, 0, prog.Devices[device].End-prog.Devices[device].First+1)
		devices[device].PeakAt = program.None
		all.note(int32(device), 0, program.None)
	}
	for _, i := range sim.order {
		all.step(i)
	}
	for device := range devices {
		all.leave(int32(device), math.MaxInt64)
	}
}

// step takes what an instruction writes, from its start, and lets go of what it
// is the last to touch, at its end.
func (all *arenas) step(i int32) {
	instr := &all.prog.Instrs[i]
	accesses := all.prog.Accesses[instr.FirstAccess:instr.EndAccess]
	all.leave(instr.Device, all.start[i])
	for _, access := range accesses {
		if access.Mode == program.Write && !all.usage[access.Buffer].arrived {
			all.take(access.Buffer)
		}
	}
	all.note(instr.Device, all.start[i], i)
	if instr.Op == program.Send {
		all.arrive(instr, all.start[i])
	}
	for j, access := range accesses {
		use := &all.usage[access.Buffer]
		if access.Mode == program.Write {
			use.arrived = false
		}
		use.until = max(use.until, all.end[i])
		if use.live && all.last[int(instr.FirstAccess)+j] {
			all.leaving[instr.Device].push(event{use.until, access.Buffer})
		}
	}
}

// arrive takes the slot that a message comes to lie in from when it is sent. It
// is the recv's, which writes it in the program.
func (all *arenas) arrive(send *program.Instr, time int64) {
	recv := all.in(all.recv, send.Channel, send.Sequence)
	if recv == program.None || all.prog.Channels[send.Channel].Slots == 0 {
		return
	}
	instr := &all.prog.Instrs[recv]
	all.leave(instr.Device, time)
	for _, access := range all.prog.Accesses[instr.FirstAccess:instr.EndAccess] {
		if access.Mode == program.Write {
			all.take(access.Buffer)
			all.usage[access.Buffer].arrived = true
		}
	}
	all.note(instr.Device, time, recv)
}

// take makes a buffer live.
func (all *arenas) take(index int32) {
	buffer, use := &all.prog.Buffers[index], &all.usage[index]
	if !use.live && !buffer.Class.Throughout() {
		use.live = true
		all.live[buffer.Device] += buffer.Bytes
	}
}

// leave lets go of what ended by a time.
func (all *arenas) leave(device int32, time int64) {
	leaving := &all.leaving[device]
	for len(*leaving) > 0 && (*leaving)[0].time <= time {
		gone := leaving.pop()
		use := &all.usage[gone.lane]
		if !use.live {
			continue // freed twice: no valid program
		}
		use.live = false
		all.live[device] -= all.prog.Buffers[gone.lane].Bytes
		all.note(device, gone.time, program.None)
	}
}

// note writes down what is live from a time on, of several at one time the last,
// and whether it is the peak.
func (all *arenas) note(device int32, time int64, by int32) {
	to, live := &all.devices[device], all.live[device]
	if live > to.Peak.Bytes || len(to.Memory) == 0 {
		to.Peak, to.PeakAt = Moment{time, live}, by
	}
	if last := len(to.Memory) - 1; last >= 0 && to.Memory[last].Time == time {
		to.Memory = to.Memory[:last]
	}
	if last := len(to.Memory) - 1; last < 0 || to.Memory[last].Bytes != live {
		to.Memory = append(to.Memory, Moment{time, live})
	}
}

// What the walk back from the end knows of a buffer.
const (
	anew    = int32(-1) // what it holds is not touched any more
	touched = int32(-2) // it is; an instruction else: that writes it again
)

// lastAccesses marks the accesses after which a buffer is not touched before it
// is written again. An instruction that reads a buffer and writes it again takes
// what it holds on: the read is none of these.
func (sim *simulation) lastAccesses() []bool {
	prog := sim.prog
	last, after := make([]bool, len(prog.Accesses)), make([]int32, len(prog.Buffers))
	for i := range after {
		after[i] = anew
	}
	for at := len(sim.order) - 1; at >= 0; at-- {
		i := sim.order[at]
		instr := &prog.Instrs[i]
		for j := instr.EndAccess - 1; j >= instr.FirstAccess; j-- {
			access := prog.Accesses[j]
			last[j] = after[access.Buffer] != touched && after[access.Buffer] != i
			after[access.Buffer] = touched
			if access.Mode == program.Write {
				after[access.Buffer] = i
			}
		}
	}
	return last
}
