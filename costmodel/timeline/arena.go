package timeline

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// arenaEvents is devmap's own engine on one device. Every byte has its place before the step runs
// ([costmodel.Regions]), in regions of one arena:
//
//   - workspace, and everything alive throughout: weights (a device has one copy of a tied one),
//     the optimizer's, caches, ids and labels, and gradients if there are several micro-batches
//   - slots for incoming messages
//   - outgoing messages, the gradient between units, results
//   - sums: squared norms of the gradients, for clipping
//   - a ring of saved activations, one entry for each micro-batch in flight, and one pass's
//     scratch; of one micro-batch a stack of both, with gradients growing from the other end
//
// The place is a rank of a pipeline, or the runs of a device under a device map. A device map's
// schedule has no kind; its stages are the devices with units, in the order of their first runs.
//
// The events are what is alive, line by line of the device's program. Unused bytes of the regions
// at the peak count as workspace, so that the peak is the arena.
func arenaEvents(table *costmodel.Table, place Rank, dev *costmodel.Device) producer {
	return func(emit func(stepEvent)) {
		place := newArena(table, place, dev)
		if place.units() == 0 {
			return
		}
		var live folding
		place.events(live.add)
		emit(stepEvent{Change: costmodel.Memory{Workspace: place.size() - live.Peak}})
		place.events(emit)
	}
}

// arena is a device as its events and its size need it.
type arena struct {
	table      *costmodel.Table
	mode       costmodel.Mode
	schedule   costmodel.Schedule
	rank       int64
	chunks     []arenaChunk
	throughout costmodel.Memory
	tied       int64 // slots of the gradients of a tied weight's uses elsewhere
	norms      int64 // bytes of the vector of squared norms
	ids        int64 // bytes of a micro-batch's ids of new tokens
	ends       arenaEnds
}

// arenaChunk is a stage, or a run of a device map, without units that pass unless it has no others.
type arenaChunk struct {
	costmodel.Interval
	units   []*costmodel.Unit
	bare    bool // its units pass
	entered bool // it is not the model's first
	// in and out are a micro-batch's message, inToken and outToken a token's.
	in, out, inToken, outToken int64
}

func newArena(table *costmodel.Table, on Rank, dev *costmodel.Device) *arena {
	place := &arena{table: table, mode: table.Workload.Mode, schedule: on.Schedule, rank: on.Index, ends: arenaEndsOf(table.Units)}
	if place.schedule.Kind == "" {
		place.schedule.Chunks = int64(len(on.Chunks))
	}
	products := false
	for _, at := range on.Chunks {
		place.chunks = append(place.chunks, place.chunkOf(table, at))
		for unit := at.First; unit < at.End; unit++ {
			place.hold(&table.Units[unit].Regions)
			products = products || table.Units[unit].Products
		}
	}
	place.ties()
	if place.mode == costmodel.Load {
		return place
	}
	if products {
		place.throughout.Workspace = aligned(table.Workspaces * dev.WorkspaceBytes)
	}
	if place.mode == costmodel.Train {
		place.norms = normBytes(table)
	}
	place.ids = idBytes(&table.Workload)
	return place
}

// hold adds a unit's memory throughout; gradients come with the first backward.
func (place *arena) hold(regions *costmodel.Regions) {
	place.throughout.Params += regions.Weights
	switch place.mode {
	case costmodel.Load, costmodel.Serve:
		return
	case costmodel.Train:
		place.throughout.OptimizerState += regions.Master + regions.State
	case costmodel.Infer:
	}
	place.throughout.KVCache += regions.Cache
	place.throughout.Activations += regions.Feed
}

// ties adds copies of weights with an owner on another device, and slots for gradients of uses there.
func (place *arena) ties() {
	for _, tie := range tiesOf(place.table.Units) {
		here, owned := int64(0), false
		for _, use := range tie.uses {
			if place.contains(use) {
				here++
				owned = owned || use == tie.Owner
			}
		}
		if here == 0 {
			continue
		}
		if !owned {
			place.throughout.Params += tie.Weights
		}
		if place.mode != costmodel.Train {
			continue
		}
		place.tied += (int64(len(tie.uses)) - here) * tie.Grads
		if !owned {
			place.throughout.OptimizerState += tie.Master + tie.State
		}
	}
}

func (place *arena) contains(unit int) bool {
	return slices.ContainsFunc(place.chunks, func(piece arenaChunk) bool { return piece.contains(unit) })
}

func (piece *arenaChunk) contains(unit int) bool { return piece.First <= unit && unit < piece.End }

func (place *arena) units() (count int) {
	for i := range place.chunks {
		count += len(place.chunks[i].units)
	}
	return count
}

func (place *arena) chunkOf(table *costmodel.Table, at costmodel.Interval) arenaChunk {
	piece := arenaChunk{Interval: at}
	for i := at.First; i < at.End; i++ {
		if unit := &table.Units[i]; !unit.Regions.Passes {
			piece.units = append(piece.units, unit)
		}
	}
	if len(piece.units) == 0 && at.First < at.End {
		piece.units, piece.bare = []*costmodel.Unit{&table.Units[at.First]}, true
	}
	if len(piece.units) == 0 {
		return piece
	}
	if piece.entered = at.First > 0; piece.entered {
		piece.in, piece.inToken = place.ends.message(table.Units, at.First)
	}
	if at.End < len(table.Units) {
		piece.out, piece.outToken = place.ends.message(table.Units, at.End)
	}
	return piece
}

// arenaEnds are [costmodel.Running].
type arenaEnds struct{ first, last int }

func arenaEndsOf(units []costmodel.Unit) (ends arenaEnds) {
	ends.first, ends.last = costmodel.Running(units)
	return ends
}

// message is the message across a border before a unit, of a micro-batch and of a token: the output
// of the last unit that does not pass; 0 if no later unit takes it.
func (ends arenaEnds) message(units []costmodel.Unit, border int) (batch, token int64) {
	if border > ends.last {
		return 0, 0
	}
	for i := border - 1; i >= 0; i-- {
		if regions := &units[i].Regions; !regions.Passes {
			return regions.Output, regions.Token
		}
	}
	return 0, 0
}

// arenaTie is a weight that several units use, the owner first.
type arenaTie struct {
	costmodel.Tie
	uses []int
}

// tiesOf are the tied weights of all units, in the order of their first reader.
func tiesOf(units []costmodel.Unit) []arenaTie {
	var out []arenaTie
	type weight struct {
		owner  int
		tensor string
	}
	known := map[weight]int{}
	for unit := range units {
		for _, tie := range units[unit].Regions.Tied {
			key := weight{tie.Owner, tie.Tensor}
			at, ok := known[key]
			if !ok {
				at, known[key] = len(out), len(out)
				out = append(out, arenaTie{tie, []int{tie.Owner}})
			}
			out[at].uses = append(out[at].uses, unit)
		}
	}
	return out
}

// normBytes is the squared norm of every gradient, in fp32.
func normBytes(table *costmodel.Table) int64 {
	var tensors int64
	for i := range table.Units {
		tensors += table.Units[i].Regions.Tensors
	}
	return aligned(4 * tensors)
}

// idBytes is a new token of every sequence of a micro-batch; 0 if none are made.
func idBytes(workload *costmodel.Workload) int64 {
	if workload.Mode != costmodel.Infer || workload.NewTokens == 0 {
		return 0
	}
	return aligned(4 * workload.Batch / max(1, workload.MicroBatches))
}

func aligned(bytes int64) int64 {
	return (bytes + costmodel.RegionAlign - 1) / costmodel.RegionAlign * costmodel.RegionAlign
}

// slots is the number of slots of a channel.
func (place *arena) slots() int64 { return arenaSlots(place.table, place.schedule) }

func arenaSlots(table *costmodel.Table, schedule costmodel.Schedule) int64 {
	return slotsOf(costmodel.StageRulesOf(table.Workload.Runtime), schedule.MicroBatches)
}

// stacked reports a step with gradients that grow into freed activations: of one micro-batch, with
// whole backwards, and no activations in host memory.
func stacked(workload *costmodel.Workload, schedule costmodel.Schedule) bool {
	return schedule.MicroBatches == 1 && !schedule.Kind.Split() && workload.OffloadActivations == ""
}

// depths are the micro-batches in flight, by chunk.
func (place *arena) depths() []order.Depth {
	return order.Depths(int64(len(place.chunks)), order.Phases(place.schedule, place.rank)...)
}
