package timeline

import "github.com/devmap-dev/devmap/costmodel"

// size is the arena in bytes: its regions, one on the other.
func (place *arena) size() int64 {
	all := place.throughout.Total()
	if place.mode == costmodel.Load {
		return all
	}
	all += place.messages() + place.streams()
	switch {
	case place.mode != costmodel.Train:
		return all + place.scratch()
	case stacked(&place.table.Workload, place.schedule):
		return all + place.stack()
	}
	depth, moved, sets := place.depths(), int64(0), int64(0)
	for i := range place.chunks {
		for _, unit := range place.chunks[i].units {
			saved, late, pending := unit.Regions.OnDevice()
			all += unit.Regions.Grads + depth[i].Saved*saved + depth[i].Late*late + depth[i].Pending*pending
			moved, sets = max(moved, unit.Regions.Out()), max(sets, unit.Regions.Moved)
		}
	}
	return all + sets*moved + place.scratch()
}

// HostBytes are the bytes of host memory in which a rank's activations wait.
func HostBytes(table *costmodel.Table, rank Rank) (bytes int64) {
	if table.Workload.OffloadActivations == "" {
		return 0
	}
	place := newArena(table, rank, &costmodel.Device{})
	depth := place.depths()
	for i := range place.chunks {
		for _, unit := range place.chunks[i].units {
			bytes += depth[i].Late * unit.Regions.Out()
		}
	}
	return bytes
}

// messages are the slots of all that comes in.
func (place *arena) messages() int64 {
	slots := place.slots()
	all := place.tied
	for i := range place.chunks {
		piece := &place.chunks[i]
		all += slots * piece.in
		switch {
		case place.mode == costmodel.Train:
			all += slots * piece.out // its gradient
		case place.ids > 0:
			all += slots * piece.inToken
		}
		if place.ids > 0 && piece.contains(place.ends.first) {
			all += place.schedule.MicroBatches * place.ids
		}
	}
	if place.mode == costmodel.Train {
		all += 2*place.norms + costmodel.RegionAlign // norms and their slot, and the sum
	}
	return all
}

// streams are what goes out, what passes from unit to unit, and results.
func (place *arena) streams() int64 {
	var all int64
	for i := range place.chunks {
		piece := &place.chunks[i]
		all += piece.out
		if place.mode == costmodel.Train {
			all += piece.in // the gradient that goes back
		}
		for _, unit := range piece.units {
			all += unit.Regions.Result
		}
		if place.sendsIDs(piece) {
			all += place.ids
		}
	}
	return all + place.passed()
}

// sendsIDs: the chunk makes tokens that are embedded on another device.
func (place *arena) sendsIDs(piece *arenaChunk) bool {
	return place.ids > 0 && piece.contains(place.ends.last) && !place.contains(place.ends.first)
}

// passed is the buffer for the output between units, or its gradient: the largest inside a chunk.
func (place *arena) passed() (most int64) {
	for i := range place.chunks {
		units := place.chunks[i].units
		for j := range len(units) - 1 {
			most = max(most, units[j].Regions.Output)
		}
	}
	return most
}

// scratch is the scratch of the largest pass.
func (place *arena) scratch() (most int64) {
	depth := place.depths()
	for i := range place.chunks {
		for _, unit := range place.chunks[i].units {
			switch regions := &unit.Regions; {
			case place.mode == costmodel.Train:
				most = max(most, regions.Scratch(depth[i].Whole > 0))
			case place.ids > 0:
				most = max(most, regions.Forward, regions.Decode)
			default:
				most = max(most, regions.Forward)
			}
		}
	}
	return most
}

// stack is one micro-batch's activations, gradients and scratch. Activations grow up from the
// bottom; gradients of later units grow down from the top. A pass has its scratch above the
// activations, in forward also above the next unit's input, which it writes.
func (place *arena) stack() (most int64) {
	var saved, grads int64
	for i := range place.chunks {
		for _, unit := range place.chunks[i].units {
			grads += unit.Regions.Grads
		}
	}
	most = grads // at the optimizer's step
	for i := range place.chunks {
		units := place.chunks[i].units
		for j, unit := range units {
			regions := &unit.Regions
			saved += regions.Input + regions.Saved
			most = max(most, saved+aboveInput(units[j+1:])+regions.Forward, saved+regions.Backward+grads)
			grads -= regions.Grads
			if regions.Remade > 0 {
				most = max(most, saved+regions.Forward+grads)
			}
		}
	}
	return most
}

// aboveInput is the end of the next kept input, above the units before it that add to it in place.
func aboveInput(behind []*costmodel.Unit) (reach int64) {
	for _, unit := range behind {
		if unit.Regions.Input > 0 {
			return reach + unit.Regions.Input
		}
		reach += unit.Regions.Saved
	}
	return 0
}
