package program

// Report is what [Program.Check] found.
type Report struct {
	// Faults are what is wrong, in the order of the rules, then of the lines: at
	// most [FaultsPerRule] of a rule, then one that counts the others.
	Faults []Fault
	// Live are the bytes of buffers that are live at every instruction, by the
	// order of a device's lines.
	Live []int64
	// Devices are the largest of them on each.
	Devices []Usage
}

// Usage is what a device's buffers come to.
type Usage struct {
	// Live is the largest sum of live buffers, At the first instruction that
	// has it (None on a device without instructions), Idle what the arena has
	// besides.
	Live int64
	At   int32
	Idle int64
}

// Err is nil of a sound program, else a [*FaultsError].
func (report *Report) Err() error {
	if len(report.Faults) == 0 {
		return nil
	}
	return &FaultsError{Faults: report.Faults}
}

// Check holds a program to the rules and reports all faults at once.
func (program *Program) Check() *Report {
	check := &check{Program: program, faults: faultList{told: make(map[string]int)}}
	for _, fault := range program.dangling {
		check.faults.add(fault)
	}
	check.number()
	check.lines()
	check.routines()
	check.messages()
	check.arenas()
	if !check.walk() {
		check.cycle()
	}
	report := &Report{Faults: check.faults.all()}
	report.Live, report.Devices = program.liveBytes()
	return report
}

// check is a program with what the rules look up.
type check struct {
	*Program
	faults faultList

	// An instruction's stream among those of all devices, and its place in it,
	// from 1: together its epoch. events are the instructions of stream 0, then
	// of stream 1, …; those of stream s begin at starts[s].
	stream, place  []int32
	events, starts []int32

	// before is the instruction that must happen before this one by rule, follows
	// the one that does because a message or a slot passes between them; None.
	before, follows []int32
	channels        []messages
	cursor          []int32 // by stream: how many of its instructions the walk could run

	cells []cell
	spans []span // of every buffer
}

// number gives every instruction its epoch.
func (check *check) number() {
	base := make([]int32, len(check.Devices)+1)
	for i := range check.Devices {
		base[i+1] = base[i] + int32(len(check.Devices[i].Streams)) //nolint:gosec // a text has fewer than 2^31 streams
	}
	count := len(check.Instrs)
	check.stream, check.place = make([]int32, count), make([]int32, count)
	check.starts = make([]int32, base[len(base)-1]+1)
	for i := range check.Instrs {
		stream := base[check.Instrs[i].Device] + check.Instrs[i].Stream
		check.starts[stream+1]++
		check.stream[i], check.place[i] = stream, check.starts[stream+1]
	}
	for i := 1; i < len(check.starts); i++ {
		check.starts[i] += check.starts[i-1]
	}
	check.events = make([]int32, count)
	for i := range check.Instrs {
		check.events[check.starts[check.stream[i]]+check.place[i]-1] = int32(i) //nolint:gosec // instructions are fewer than 2^31
	}
	check.before, check.follows = make([]int32, count), make([]int32, count)
	for i := range count {
		check.before[i], check.follows[i] = None, None
	}
}

// lines holds single lines to what their words mean.
func (check *check) lines() {
	for i := range check.Instrs {
		instr, index := &check.Instrs[i], int32(i) //nolint:gosec // instructions are fewer than 2^31
		for _, access := range check.accesses(index) {
			buffer := &check.Buffers[access.Buffer]
			if buffer.Device != instr.Device {
				check.faultAt("V5", index, "buffer %q lies on device %d; an instruction touches buffers of its own device, others send theirs",
					buffer.Name, check.Devices[buffer.Device].ID)
			}
		}
		for _, wait := range check.Waits[instr.FirstWait:instr.EndWait] {
			if target := &check.Instrs[wait.Instr]; target.Stream != wait.Stream {
				check.faultAt("V6", index, "waits for %s on stream %q, which runs on %q: want %q", check.Place(wait.Instr),
					check.Devices[target.Device].Streams[wait.Stream], check.Devices[target.Device].Streams[target.Stream], check.wait(wait.Instr))
			}
		}
	}
}

func (check *check) accesses(index int32) []Access {
	instr := &check.Instrs[index]
	return check.Accesses[instr.FirstAccess:instr.EndAccess]
}
