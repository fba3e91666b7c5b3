package executor

import (
	"cmp"
	"slices"

	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
)

// Why bytes of an arena were never written.
const (
	forLibraries = "library workspace"
	forAlignment = "alignment"
	betweenAll   = "room between buffers"
	neverWritten = "values that no kernel wrote"
)

// arenaPlan is the purpose of the bytes of a device's arena.
type arenaPlan struct {
	regions []bind.Region
	// cuts are the borders of buffers, in order. buffers[i] is the buffer in [cuts[i], cuts[i+1]),
	// nil between buffers. If several lie there at different times, it is the first of the
	// program's.
	cuts    []int64
	buffers []*program.Buffer
	// written are the areas that kernels write, by offset. reach[i] is the largest end of the first
	// i+1.
	written []bind.Area
	reach   []int64
	gaps    []Gap
	gapOf   map[[2]string]int // by buffer and reason
}

func (run scanner) planOf(device int) (*arenaPlan, error) {
	plan := &arenaPlan{regions: run.bound.Regions(device), gapOf: make(map[[2]string]int)}
	plan.cut(run.job.Program, int32(device))
	seen := make(map[bind.Area]bool)
	on := &run.job.Program.Devices[device]
	for index := on.First; index < on.End; index++ {
		instr, err := run.bound.Instr(index)
		if err != nil {
			return nil, err
		}
		for number := range instr.Runs {
			made := &instr.Runs[number]
			for at := range made.Kernels {
				for each := range made.Kernels[at].Operands {
					operand := &made.Kernels[at].Operands[each]
					if operand.Mode != ' ' && made.Offsets[operand.Tensor] >= 0 {
						seen[made.Area(operand)] = true
					}
				}
			}
		}
	}
	for area := range seen {
		plan.written = append(plan.written, area)
	}
	slices.SortFunc(plan.written, func(one, other bind.Area) int { return cmp.Compare(one.Offset, other.Offset) })
	most := int64(0)
	for i := range plan.written {
		most = max(most, areaEnd(&plan.written[i]))
		plan.reach = append(plan.reach, most)
	}
	return plan, nil
}

func areaEnd(area *bind.Area) int64 {
	return area.Offset + ((area.Rows-1)*area.Stride+area.Columns)*area.DType.Bits()/8
}

// cut gives every range between borders of buffers the first buffer that has it. Ranges that
// already have one are skipped in one jump, so that it costs little more than sorting the borders.
func (plan *arenaPlan) cut(prog *program.Program, device int32) {
	var buffers []*program.Buffer
	for index := range prog.Buffers {
		if buffer := &prog.Buffers[index]; buffer.Device == device && buffer.Class != program.Host {
			buffers = append(buffers, buffer)
			plan.cuts = append(plan.cuts, buffer.Offset, buffer.Offset+buffer.Bytes)
		}
	}
	plan.cuts = append(plan.cuts, 0, prog.Devices[device].Arena)
	slices.Sort(plan.cuts)
	plan.cuts = slices.Compact(plan.cuts)
	plan.buffers = make([]*program.Buffer, len(plan.cuts))
	next := make([]int, len(plan.cuts)+1) // the first stretch from here on that none has
	for i := range next {
		next[i] = i
	}
	free := func(at int) int {
		for next[at] != at {
			next[at], at = next[next[at]], next[at]
		}
		return at
	}
	for _, buffer := range buffers {
		first, _ := slices.BinarySearch(plan.cuts, buffer.Offset)
		end, _ := slices.BinarySearch(plan.cuts, buffer.Offset+buffer.Bytes)
		for at := free(first); at < end; at = free(at) {
			plan.buffers[at], next[at] = buffer, at+1
		}
	}
}

// pieces cuts [from, to) at the borders of buffers.
func (plan *arenaPlan) pieces(from, to int64, tell func(buffer *program.Buffer, from, to int64)) {
	at, found := slices.BinarySearch(plan.cuts, from)
	if !found {
		at--
	}
	for ; at < len(plan.cuts)-1 && plan.cuts[at] < to; at++ {
		tell(plan.buffers[at], max(from, plan.cuts[at]), min(to, plan.cuts[at+1]))
	}
}

// stray returns how many bytes of [from, to) are in no buffer.
func (plan *arenaPlan) stray(from, to int64) (bytes int64) {
	plan.pieces(from, to, func(buffer *program.Buffer, from, to int64) {
		if buffer == nil {
			bytes += to - from
		}
	})
	return bytes
}

// untouched records why nothing was written to [from, to).
func (plan *arenaPlan) untouched(from, to int64) {
	plan.pieces(from, to, func(buffer *program.Buffer, from, to int64) {
		gap := Gap{Reason: betweenAll, Bytes: to - from}
		if buffer != nil {
			gap.Buffer = buffer.Name
			switch {
			case buffer.Class == program.Workspace:
				gap.Reason = forLibraries
			case plan.writes(from, to):
				gap.Reason, gap.Missed = neverWritten, true
			default:
				gap.Reason = forAlignment
			}
		}
		key := [2]string{gap.Buffer, gap.Reason}
		at, known := plan.gapOf[key]
		if !known {
			at = len(plan.gaps)
			plan.gapOf[key] = at
			plan.gaps = append(plan.gaps, gap)
			return
		}
		plan.gaps[at].Bytes += gap.Bytes
	})
}

// writes reports whether a kernel writes some of [from, to).
func (plan *arenaPlan) writes(from, to int64) bool {
	end, _ := slices.BinarySearchFunc(plan.written, to, func(area bind.Area, to int64) int { return cmp.Compare(area.Offset, to) })
	for i := end - 1; i >= 0 && plan.reach[i] > from; i-- {
		if meets(&plan.written[i], from, to) {
			return true
		}
	}
	return false
}

// meets reports whether an area has a value in [from, to). Its rows have gaps between them if they
// are shorter than their stride.
func meets(area *bind.Area, from, to int64) bool {
	size := area.DType.Bits() / 8
	if to <= area.Offset || from >= areaEnd(area) {
		return false
	}
	stride, width := area.Stride*size, area.Columns*size
	first := max(from, area.Offset) - area.Offset
	row := first / stride
	if first-row*stride < width {
		return true
	}
	return area.Offset+(row+1)*stride < to // the next row begins in it
}
