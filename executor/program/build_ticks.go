package program

// writtenLink is how long a channel's messages take, by its name.
type writtenLink struct {
	channel        string
	ticks, latency int64
	place          string
}

// writtenTicks is how long instructions take: those of a device that run a
// routine in one way, or, where there is no routine, one by its number.
type writtenTicks struct {
	device, number int32
	op             Op
	routine        string
	ticks          int64
	place          string
}

// shared are the instructions that one line gives a duration.
type shared struct {
	device, routine int32
	op              Op
}

// settleTicks gives channels and instructions their durations. One of its own
// comes before that of the instruction's channel or routine.
func (build *builder) settleTicks(numbered *numbering) {
	program := &build.program
	if len(build.links)+len(build.ticks) == 0 {
		return
	}
	program.Timed = true
	build.settleLinks()
	ticks := build.sharedTicks()
	for i := range program.Instrs {
		program.Instrs[i].Ticks = program.usualTicks(&program.Instrs[i], ticks)
	}
	given := map[int32]bool{}
	for i := range build.ticks {
		own := &build.ticks[i]
		if own.routine != "" {
			continue
		}
		device, ok := build.devices[own.device]
		var index int32
		if ok {
			index, ok = numbered.find(device, own.number)
		}
		if !ok || given[index] {
			build.faultAt(own.place, None, None, "ticks of %d.%d: %s", own.device, own.number, onceOr(ok, "there is no such instruction"))
			continue
		}
		given[index] = true
		program.Instrs[index].Ticks = own.ticks
	}
}

// usualTicks is how long an instruction takes that has no line of its own.
func (program *Program) usualTicks(instr *Instr, ticks map[shared]int64) int64 {
	switch {
	case instr.Op == Send && instr.Channel >= 0:
		return program.Channels[instr.Channel].Ticks
	case instr.Routine >= 0:
		return ticks[shared{instr.Device, instr.Routine, instr.Op}]
	}
	return 0
}

func (build *builder) settleLinks() {
	given := map[int32]bool{}
	for _, link := range build.links {
		index, ok := build.channels[link.channel]
		if !ok || given[index] {
			build.faultAt(link.place, None, None, "link of channel %q: %s", link.channel, onceOr(ok, "it is not declared"))
			continue
		}
		given[index] = true
		channel := &build.program.Channels[index]
		channel.Ticks, channel.Latency = link.ticks, link.latency
	}
}

func (build *builder) sharedTicks() map[shared]int64 {
	ticks := map[shared]int64{}
	for i := range build.ticks {
		line := &build.ticks[i]
		if line.routine == "" {
			continue
		}
		device, known := build.devices[line.device]
		routine, ok := build.routines[line.routine]
		key := shared{device, routine, line.op}
		if _, twice := ticks[key]; twice || !known || !ok {
			build.faultAt(line.place, None, None, "ticks of %s %q on device %d: %s", line.op, line.routine, line.device, onceOr(known && ok, "one of them is not declared"))
			continue
		}
		ticks[key] = line.ticks
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
