package program

import (
	"cmp"
	"slices"
)

// arenas holds buffers to V9 and, where they are there throughout, to V8; and
// cuts arenas into cells.
func (check *check) arenas() {
	check.spans = make([]span, len(check.Buffers))
	touched := check.touched()
	cells := int32(0)
	for _, buffers := range check.byDevice() {
		slices.SortFunc(buffers, func(a, b int32) int {
			return cmp.Or(cmp.Compare(check.Buffers[a].Offset, check.Buffers[b].Offset), cmp.Compare(a, b))
		})
		check.throughout(buffers, touched)
		cells = check.cut(buffers, cells)
	}
	cells = check.owned(cells)
	check.cells = make([]cell, cells)
	for i := range check.cells {
		check.cells[i] = cell{owner: None, reader: none, writer: none, micro: None, pass: None}
	}
	for i := range check.Devices {
		check.arena(int32(i))
	}
	for i := range check.Buffers {
		buffer := &check.Buffers[i]
		if end := buffer.Offset + buffer.Bytes; end > check.Devices[buffer.Device].Arena {
			check.faultOn("V9", buffer.Device, "buffer %q ends at byte %d; the arena has %d", buffer.Name, end, check.Devices[buffer.Device].Arena)
		}
	}
}

// arena: V9, an arena is no larger than what the device may hold.
func (check *check) arena(device int32) {
	if of := &check.Devices[device]; of.Arena > of.Budget {
		check.faultOn("V9", device, "the arena is %d bytes, the budget %d: %d too many", of.Arena, of.Budget, of.Arena-of.Budget)
	}
}

// touched says which buffers any instruction touches.
func (check *check) touched() []bool {
	touched := make([]bool, len(check.Buffers))
	for i := range check.Accesses {
		touched[check.Accesses[i].Buffer] = true
	}
	return touched
}

// byDevice is the buffers that have bytes, by device.
func (check *check) byDevice() [][]int32 {
	buffers := make([][]int32, len(check.Devices))
	for i := range check.Buffers {
		if device := check.Buffers[i].Device; check.Buffers[i].Bytes > 0 {
			buffers[device] = append(buffers[device], int32(i))
		}
	}
	return buffers
}

// throughout: V8, a buffer that is there throughout overlaps none that is used
// or there throughout too. buffers are in the order of their offsets, so that
// of those before one the two that reach furthest are all that need be looked at.
func (check *check) throughout(buffers []int32, touched []bool) {
	furthest, always := None, None // of all that count, of those there throughout
	end := func(index int32) int64 {
		if index == None {
			return 0
		}
		return check.Buffers[index].Offset + check.Buffers[index].Bytes
	}
	for _, index := range buffers {
		buffer := &check.Buffers[index]
		throughout := buffer.Class.Throughout()
		if !throughout && !touched[index] {
			continue
		}
		other := always
		if throughout {
			other = furthest
		}
		if end(other) > buffer.Offset {
			check.faultOn("V8", buffer.Device, "buffers %q [%d, %d) and %q [%d, %d) overlap, and one of them is there throughout; want them apart",
				check.Buffers[other].Name, check.Buffers[other].Offset, end(other), buffer.Name, buffer.Offset, end(index))
		}
		if end(index) > end(furthest) {
			furthest = index
		}
		if throughout && end(index) > end(always) {
			always = index
		}
	}
}

// cut finds the cells of a device's buffers, in the order of their offsets,
// numbered from first; it returns the next number.
func (check *check) cut(buffers []int32, first int32) int32 {
	borders := make([]int64, 0, 2*len(buffers))
	for _, index := range buffers {
		buffer := &check.Buffers[index]
		borders = append(borders, buffer.Offset, buffer.Offset+buffer.Bytes)
	}
	slices.Sort(borders)
	borders = slices.Compact(borders)
	number := func(border int64) int32 {
		found, _ := slices.BinarySearch(borders, border)
		return first + int32(found)
	}
	for _, index := range buffers {
		buffer := &check.Buffers[index]
		check.spans[index].first, check.spans[index].end = number(buffer.Offset), number(buffer.Offset+buffer.Bytes)
	}
	return first + int32(len(borders))
}

// owned gives cells of their own to the buffers that end before they are
// written anew, numbered from first; it returns the next number.
func (check *check) owned(first int32) int32 {
	for i := range check.spans {
		check.spans[i].own = None
	}
	for i := range check.Instrs {
		if op := check.Instrs[i].Op; op != Recv && op != Unload {
			continue
		}
		for _, access := range check.accesses(int32(i)) {
			if span := &check.spans[access.Buffer]; span.own == None {
				span.own = first
				first++
			}
		}
	}
	return first
}
