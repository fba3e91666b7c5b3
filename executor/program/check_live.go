package program

// Usage is the memory of a device's buffers, in bytes.
type Usage struct {
	// Live is the largest sum of live buffers. At is the first instruction that has it, None on a
	// device without instructions. Idle is the rest of the arena.
	Live int64
	At   int32
	Idle int64
}

// life is the range of lines in which a buffer is live.
type life struct{ first, last int32 }

// liveBytes finds which buffers are live at every line. It returns their bytes by instruction, and
// the largest sum of each device.
//
// Buffers of classes that are there throughout always count. Another one is live from the line that
// writes it to the last line that touches it before it is written again. Each life is two entries
// of an array of differences, so that all of it costs one visit of every access and every line.
func (program *Program) liveBytes() ([]int64, []Usage) {
	live := make([]int64, len(program.Instrs))
	lives := make([]life, len(program.Buffers))
	usages := make([]Usage, len(program.Devices))
	always := make([]int64, len(program.Devices))
	for number := range program.Buffers {
		buffer := &program.Buffers[number]
		lives[number].first = None
		if buffer.Class.Throughout() {
			always[buffer.Device] += buffer.Bytes
		}
	}
	end := func(number int32) {
		buffer, life := &program.Buffers[number], lives[number]
		if life.first == None || buffer.Class.Throughout() || buffer.Class == Host {
			return
		}
		live[life.first] += buffer.Bytes
		if next := life.last + 1; next < program.Devices[buffer.Device].End {
			live[next] -= buffer.Bytes
		}
	}
	for number := range program.Instrs {
		instr, line := &program.Instrs[number], int32(number)
		for _, access := range program.Accesses[instr.FirstAccess:instr.EndAccess] {
			life := &lives[access.Buffer]
			if program.Buffers[access.Buffer].Device != instr.Device {
				continue // a fault of its own
			}
			// A line that reads a buffer and writes it again does not end its life.
			if life.first == None || access.Mode == Write && life.last != line {
				end(access.Buffer)
				life.first = line
			}
			life.last = line
		}
	}
	for number := range lives {
		end(int32(number))
	}
	for number := range program.Devices {
		usages[number] = program.Devices[number].usage(live, always[number])
	}
	return live, usages
}

// usage turns a device's range of differences into sums, and finds the largest.
func (device *Device) usage(live []int64, always int64) Usage {
	usage := Usage{Live: always, At: None, Idle: device.Arena - always}
	sum := always
	for line := device.First; line < device.End; line++ {
		sum += live[line]
		live[line] = sum
		if sum > usage.Live || usage.At == None {
			usage = Usage{Live: sum, At: line, Idle: device.Arena - sum}
		}
	}
	return usage
}
