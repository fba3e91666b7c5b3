package program

import (
	"cmp"
	"slices"
)

// arenaRules checks where buffers lie, and cuts arenas into cells: V8 and V9.
type arenaRules struct{ *check }

// arenas checks buffers against V9 and, if they are there throughout, against V8. It cuts arenas
// into cells.
func (rules *arenaRules) arenas() {
	rules.spans = make([]span, len(rules.Buffers))
	touched := rules.touched()
	cells := int32(0)
	for _, buffers := range rules.byDevice() {
		slices.SortFunc(buffers, func(a, b int32) int {
			return cmp.Or(cmp.Compare(rules.Buffers[a].Offset, rules.Buffers[b].Offset), cmp.Compare(a, b))
		})
		rules.throughout(buffers, touched)
		cells = rules.cut(buffers, cells)
	}
	cells = rules.owned(cells)
	rules.cells = make([]cell, cells)
	for i := range rules.cells {
		rules.cells[i] = cell{owner: None, reader: none, writer: none, micro: None, pass: None}
	}
	for i := range rules.Devices {
		rules.arena(int32(i))
	}
	for i := range rules.Buffers {
		buffer := &rules.Buffers[i]
		if end := buffer.Offset + buffer.Bytes; buffer.Class != Host && end > rules.Devices[buffer.Device].Arena {
			rules.faultOn("V9", buffer.Device, "buffer %q ends at byte %d; the arena has %d", buffer.Name, end, rules.Devices[buffer.Device].Arena)
		}
	}
}

// arena: V9, an arena is no larger than the device's budget.
func (rules *arenaRules) arena(device int32) {
	if of := &rules.Devices[device]; of.Arena > of.Budget {
		rules.faultOn("V9", device, "the arena is %d bytes, the budget %d: %d too many", of.Arena, of.Budget, of.Arena-of.Budget)
	}
}

// touched reports which buffers any instruction touches.
func (rules *arenaRules) touched() []bool {
	touched := make([]bool, len(rules.Buffers))
	for i := range rules.Accesses {
		touched[rules.Accesses[i].Buffer] = true
	}
	return touched
}

// byDevice returns the buffers that have bytes, by device: first those of the arenas, then those of
// host memory.
func (rules *arenaRules) byDevice() [][]int32 {
	buffers := make([][]int32, 2*len(rules.Devices))
	for i := range rules.Buffers {
		at := int(rules.Buffers[i].Device)
		if rules.Buffers[i].Class == Host {
			at += len(rules.Devices)
		}
		if rules.Buffers[i].Bytes > 0 {
			buffers[at] = append(buffers[at], int32(i))
		}
	}
	return buffers
}

// throughout: V8, a buffer that is there throughout does not overlap another one that is used or
// there throughout. The buffers are in the order of their offsets. Each is compared with only two
// before it: those that reach furthest.
func (rules *arenaRules) throughout(buffers []int32, touched []bool) {
	furthest, always := None, None // of all that count, of those there throughout
	end := func(index int32) int64 {
		if index == None {
			return 0
		}
		return rules.Buffers[index].Offset + rules.Buffers[index].Bytes
	}
	for _, index := range buffers {
		buffer := &rules.Buffers[index]
		throughout := buffer.Class.Throughout()
		if !throughout && !touched[index] {
			continue
		}
		other := always
		if throughout {
			other = furthest
		}
		if end(other) > buffer.Offset {
			rules.faultOn("V8", buffer.Device, "buffers %q [%d, %d) and %q [%d, %d) overlap, and one of them is there throughout; want them apart",
				rules.Buffers[other].Name, rules.Buffers[other].Offset, end(other), buffer.Name, buffer.Offset, end(index))
		}
		if end(index) > end(furthest) {
			furthest = index
		}
		if throughout && end(index) > end(always) {
			always = index
		}
	}
}

// cut finds the cells of a device's buffers, which are in the order of their offsets. Cells are
// numbered from first; it returns the next number.
func (rules *arenaRules) cut(buffers []int32, first int32) int32 {
	borders := make([]int64, 0, 2*len(buffers))
	for _, index := range buffers {
		buffer := &rules.Buffers[index]
		borders = append(borders, buffer.Offset, buffer.Offset+buffer.Bytes)
	}
	slices.Sort(borders)
	borders = slices.Compact(borders)
	number := func(border int64) int32 {
		found, _ := slices.BinarySearch(borders, border)
		return first + int32(found)
	}
	for _, index := range buffers {
		buffer := &rules.Buffers[index]
		rules.spans[index].first, rules.spans[index].end = number(buffer.Offset), number(buffer.Offset+buffer.Bytes)
	}
	return first + int32(len(borders))
}

// owned gives cells of their own to buffers that receive messages or are unloaded, numbered from
// first. It returns the next number.
func (rules *arenaRules) owned(first int32) int32 {
	for i := range rules.spans {
		rules.spans[i].own = None
	}
	for i := range rules.Instrs {
		if op := rules.Instrs[i].Op; op != Recv && op != Unload {
			continue
		}
		for _, access := range rules.accesses(int32(i)) {
			if span := &rules.spans[access.Buffer]; span.own == None {
				span.own = first
				first++
			}
		}
	}
	return first
}
