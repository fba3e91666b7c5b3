package simulate

import (
	"math"

	"github.com/devmap-dev/devmap/executor/program"
)

// arenas follows the live buffers of every device through the instructions, in the order in which
// they were simulated. A buffer that ends by the time at which an instruction starts is gone before
// that takes memory: whatever frees it was simulated before.
type arenas struct {
	*simulation
	devices []Device
	last    []bool      // by access: nothing later touches the buffer's contents
	live    []int64     // by device
	usage   []bufferUse // by buffer
	leaving []queue     // by device: when buffers end; an event's lane is the buffer
}

// bufferUse is the state of a buffer.
type bufferUse struct {
	live    bool
	arrived bool  // it came with its send, before the recv that writes it
	from    int64 // when its life began
	until   int64 // the latest end of an access so far
}

// memory fills in the devices' memory over time.
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

// step takes the buffers that an instruction writes, at its start. At its end it releases those
// that the instruction is the last to touch.
func (all *arenas) step(i int32) {
	instr := &all.prog.Instrs[i]
	accesses := all.prog.Accesses[instr.FirstAccess:instr.EndAccess]
	all.leave(instr.Device, all.start[i])
	for _, access := range accesses {
		if access.Mode == program.Write && !all.usage[access.Buffer].arrived {
			all.take(access.Buffer, all.start[i])
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

// arrive takes the slot of a message when it is sent. In the program the recv writes that slot.
func (all *arenas) arrive(send *program.Instr, time int64) {
	recv := all.in(all.recv, send.Channel, send.Sequence)
	if recv == program.None || all.prog.Channels[send.Channel].Slots == 0 {
		return
	}
	instr := &all.prog.Instrs[recv]
	all.leave(instr.Device, time)
	for _, access := range all.prog.Accesses[instr.FirstAccess:instr.EndAccess] {
		if access.Mode == program.Write {
			all.take(access.Buffer, time)
			all.usage[access.Buffer].arrived = true
		}
	}
	all.note(instr.Device, time, recv)
}

// take makes a buffer of an arena live from a time on.
func (all *arenas) take(index int32, time int64) {
	buffer, use := &all.prog.Buffers[index], &all.usage[index]
	if !use.live && !buffer.Class.Throughout() && buffer.Class != program.Host {
		use.live, use.from = true, time
		all.live[buffer.Device] += buffer.Bytes
	}
}

// leave releases the buffers that ended by a time.
func (all *arenas) leave(device int32, time int64) {
	leaving := &all.leaving[device]
	for len(*leaving) > 0 && (*leaving)[0].time <= time {
		gone := leaving.pop()
		use := &all.usage[gone.lane]
		if !use.live {
			continue // freed twice: no valid program
		}
		use.live = false
		all.devices[device].Lives = append(all.devices[device].Lives, Life{gone.lane, use.from, gone.time})
		all.live[device] -= all.prog.Buffers[gone.lane].Bytes
		all.note(device, gone.time, program.None)
	}
}

// note records the live bytes from a time on, and whether they are the peak. The last of several at
// one time counts.
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

// The state of a buffer in the walk back from the end.
const (
	anew    = int32(-1) // its contents are not touched any more
	touched = int32(-2) // they are; else the instruction that writes the buffer again
)

// lastAccesses marks the accesses after which a buffer is not touched before it is written again.
// If an instruction reads a buffer and writes it again, the contents live on: that read is not
// marked.
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
