package program

// writtenLink is how long a channel's messages take, by the channel's name.
type writtenLink struct {
	channel        string
	ticks, latency int64
	place          string
}

// writtenTicks is how long instructions take: all of a device with an operation on an object or,
// without an object, the one with a number.
type writtenTicks struct {
	device, number int32
	op             Op
	object         string
	ticks          int64
	place          string
}

// durationKey is the group of instructions that one line gives a duration. They are on one device,
// have one operation, and run one routine or, without a routine, change one buffer first. The line
// has no numbers of instructions, so that it remains valid when some are added or removed.
type durationKey struct {
	device, object int32
	op             Op
}

// durationKeyOf returns the group of an instruction; false: it has none.
func (program *Program) durationKeyOf(instr *Instr) (durationKey, bool) {
	if instr.Op.Runs() {
		return durationKey{instr.Device, instr.Routine, instr.Op}, instr.Routine >= 0
	}
	for _, access := range program.Accesses[instr.FirstAccess:instr.EndAccess] {
		if access.Mode != Read {
			return durationKey{instr.Device, access.Buffer, instr.Op}, true
		}
	}
	return durationKey{}, false
}

// settleTicks gives channels and instructions their durations. An instruction's own line comes
// before the line of its channel or routine.
func (link *linker) settleTicks() {
	program := &link.program
	if len(link.links)+len(link.ticks) == 0 {
		return
	}
	program.Timed = true
	link.settleLinks()
	ticks := link.ticksByKey()
	for i := range program.Instrs {
		program.Instrs[i].Ticks = program.usualTicks(&program.Instrs[i], ticks)
	}
	given := map[int32]bool{}
	for i := range link.ticks {
		own := &link.ticks[i]
		if own.object != "" {
			continue
		}
		device, ok := link.devices[own.device]
		var index int32
		if ok {
			index, ok = link.find(device, own.number)
		}
		if !ok || given[index] {
			link.faultAt(own.place, None, None, "ticks of %d.%d: %s", own.device, own.number, onceOr(ok, "there is no such instruction"))
			continue
		}
		given[index] = true
		program.Instrs[index].Ticks = own.ticks
	}
}

// usualTicks returns the duration of an instruction without a line of its own.
func (program *Program) usualTicks(instr *Instr, ticks map[durationKey]int64) int64 {
	if instr.Op == Send && instr.Channel >= 0 {
		return program.Channels[instr.Channel].Ticks
	}
	like, ok := program.durationKeyOf(instr)
	if !ok {
		return 0
	}
	return ticks[like]
}

func (link *linker) settleLinks() {
	given := map[int32]bool{}
	for _, line := range link.links {
		index, ok := link.channels[line.channel]
		if !ok || given[index] {
			link.faultAt(line.place, None, None, "link of channel %q: %s", line.channel, onceOr(ok, "it is not declared"))
			continue
		}
		given[index] = true
		channel := &link.program.Channels[index]
		channel.Ticks, channel.Latency = line.ticks, line.latency
	}
}

func (link *linker) ticksByKey() map[durationKey]int64 {
	ticks := map[durationKey]int64{}
	for i := range link.ticks {
		line := &link.ticks[i]
		if line.object == "" {
			continue
		}
		device, known := link.devices[line.device]
		object, ok := link.routines[line.object]
		if known && !line.op.Runs() {
			object, ok = link.names[device].buffers[line.object]
		}
		like := durationKey{device, object, line.op}
		if _, twice := ticks[like]; twice || !known || !ok {
			link.faultAt(line.place, None, None, "ticks of %s %q on device %d: %s", line.op, line.object, line.device, onceOr(known && ok, "one of them is not declared"))
			continue
		}
		ticks[like] = line.ticks
	}
	return ticks
}

// onceOr says what is wrong with a line that gives a duration.
func onceOr(known bool, unknown string) string {
	if known {
		return "given twice"
	}
	return unknown
}
