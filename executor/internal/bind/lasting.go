package bind

import (
	"cmp"
	"slices"

	"github.com/devmap-dev/devmap/executor/program"
)

// Lasting is a range of a device's arena whose contents one step leaves to the next. A step writes
// all other ranges before it reads them. A read of a buffer that nothing wrote is a fault of the
// program, and only loads and zeroes write before a step.
type Lasting struct {
	Stretch
	Residency Residency
}

// Residency says what happens to a range between two steps of a program.
type Residency int

// The values of Residency. Every sequence or batch restarts an Empty stretch: a step writes
// what it reads of it, and the first step finds zeros there.
const (
	Fixed   Residency = iota // as it was loaded: no step writes it
	Changed                  // steps write it
	Empty                    // caches and feeds
)

// near is the largest distance of two ranges of the same Residency that are copied as one, with the
// poison between them. Starting a copy costs more than so many more bytes.
const near = 4096

// Lasting returns the ranges of every device, by their offsets.
func (bound *Bound) Lasting() [][]Lasting {
	prog := bound.Program
	loaded, written := make([]bool, len(prog.Buffers)), make([]bool, len(prog.Buffers))
	for i := range prog.Instrs {
		instr := &prog.Instrs[i]
		begins := instr.Op == program.Load || instr.Op == program.Zero
		for _, access := range prog.Accesses[instr.FirstAccess:instr.EndAccess] {
			loaded[access.Buffer] = loaded[access.Buffer] || begins
			written[access.Buffer] = written[access.Buffer] || !begins && access.Mode != program.Read
		}
	}
	all := make([][]Lasting, len(prog.Devices))
	for i := range prog.Buffers {
		if buffer := &prog.Buffers[i]; loaded[i] && buffer.Bytes > 0 {
			all[buffer.Device] = append(all[buffer.Device], Lasting{Stretch{buffer.Offset, buffer.Bytes}, residencyOf(buffer.Class, written[i])})
		}
	}
	for i := range all {
		all[i] = joined(all[i])
	}
	return all
}

// Retained returns the size in bytes of a copy of what lasts, over all devices.
func (bound *Bound) Retained() (bytes int64) {
	for _, all := range bound.Lasting() {
		for i := range all {
			if all[i].Residency != Empty {
				bytes += all[i].Bytes
			}
		}
	}
	return bytes
}

func residencyOf(class program.Class, written bool) Residency {
	switch {
	case class == program.Cache || class == program.Feed:
		return Empty
	case written || !class.Throughout(): // other buffers have its bytes too
		return Changed
	}
	return Fixed
}

// joined sorts the ranges and joins those that are near each other.
func joined(all []Lasting) (long []Lasting) {
	slices.SortFunc(all, func(one, other Lasting) int { return cmp.Compare(one.Offset, other.Offset) })
	for _, next := range all {
		if last := len(long) - 1; last >= 0 && long[last].Residency == next.Residency && next.Offset-long[last].end() <= near {
			long[last].Bytes = max(long[last].end(), next.Offset+next.Bytes) - long[last].Offset
			continue
		}
		long = append(long, next)
	}
	return long
}

func (stretch Stretch) end() int64 { return stretch.Offset + stretch.Bytes }
