package timeline

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// arenaChain computes the arena of any device, a rank of a pipeline or the runs of a device map, in
// O(1) a run and a tied weight. It keeps sums and maxima of all stretches of units, after O(n log
// n) preparation, and each rank's micro-batches in flight. It is not safe for concurrent use.
type arenaChain struct {
	table *costmodel.Table
	mode  costmodel.Mode
	sums  []arenaSums // of the units before each
	ties  []arenaTie  // that may be apart
	// before is the last unit before one that does not pass, or -1; keeps the last that keeps its input.
	before, keeps []int
	output        sparse // of units that do not pass
	scratch       sparse
	whole         sparse // the same with whole backwards, if the schedule splits others
	moved         sparse // what a micro-batch has in host memory
	sets          int64  // of these on a device
	stack         arenaStacks
	leastIn       []border // of a run that begins at a unit, not the first, or before it
	leastOut      []border // of one that ends after a unit, not the last, or later
	norms, ids    int64
	ends          arenaEnds

	inFlight map[costmodel.Schedule][][]order.Depth // by rank
	asked    costmodel.Schedule                     // last: the names of orders are long
	answer   [][]order.Depth
}

// arenaSums are the additive figures of the units before one.
type arenaSums struct {
	throughout, grads, results int64
	saved, late, pending       int64 // [costmodel.Regions.OnDevice]
	out                        int64 // [costmodel.Regions.Out]
	products, runs             int   // how many run products, and do not pass
}

// border is a message, of a micro-batch and of a token.
type border struct{ batch, token int64 }

// newArenaChain prepares the units of a table.
func newArenaChain(table *costmodel.Table) *arenaChain {
	count := len(table.Units)
	chain := &arenaChain{
		table: table, mode: table.Workload.Mode, ties: tiesOf(table.Units), sums: make([]arenaSums, count+1),
		before: make([]int, count+1), keeps: make([]int, count+1),
		norms: normBytes(table), ids: idBytes(&table.Workload), ends: arenaEndsOf(table.Units), inFlight: map[costmodel.Schedule][][]order.Depth{},
	}
	if !table.Workload.Strategy.Traits().Staged {
		chain.ties = nil // under a device map the uses of a weight are on one device
	}
	chain.before[0], chain.keeps[0] = -1, -1
	output, scratch, whole, moved := make([]int64, count), make([]int64, count), make([]int64, count), make([]int64, count)
	for i := range table.Units {
		regions := &table.Units[i].Regions
		chain.sums[i+1] = chain.plus(chain.sums[i], &table.Units[i])
		chain.before[i+1], chain.keeps[i+1] = chain.before[i], chain.keeps[i]
		if regions.Input > 0 {
			chain.keeps[i+1] = i
		}
		if !regions.Passes {
			chain.before[i+1], output[i] = i, regions.Output
		}
		scratch[i] = regions.Forward
		switch {
		case chain.mode == costmodel.Train:
			scratch[i], whole[i], moved[i] = regions.Scratch(false), regions.Scratch(true), regions.Out()
			chain.sets = max(chain.sets, regions.Moved)
		case chain.ids > 0:
			scratch[i] = max(scratch[i], regions.Decode)
		}
	}
	chain.output, chain.scratch, chain.whole, chain.moved = unlessZero(output), unlessZero(scratch), unlessZero(whole), unlessZero(moved)
	if chain.mode == costmodel.Train {
		chain.stack = newArenaStacks(table.Units, chain.sums)
	}
	chain.leastBorders()
	return chain
}

func (chain *arenaChain) plus(before arenaSums, unit *costmodel.Unit) arenaSums {
	regions := &unit.Regions
	before.throughout += regions.Weights
	if chain.mode == costmodel.Train {
		before.throughout += regions.Master + regions.State
		before.grads += regions.Grads
		saved, late, pending := regions.OnDevice()
		before.saved, before.late, before.pending = before.saved+saved, before.late+late, before.pending+pending
		before.out += regions.Out()
	}
	if chain.mode != costmodel.Load {
		before.throughout += regions.Cache + regions.Feed
		before.results += regions.Result
	}
	if unit.Products {
		before.products++
	}
	if !regions.Passes {
		before.runs++
	}
	return before
}

// border is the message before a unit.
func (chain *arenaChain) border(unit int) border {
	if last := chain.before[unit]; last >= 0 && unit <= chain.ends.last {
		regions := &chain.table.Units[last].Regions
		return border{regions.Output, regions.Token}
	}
	return border{}
}

// leastBorders fills in leastIn and leastOut.
func (chain *arenaChain) leastBorders() {
	count := len(chain.table.Units)
	chain.leastIn, chain.leastOut = make([]border, count+1), make([]border, count+1)
	for unit := 1; unit < count; unit++ {
		here := chain.border(unit)
		chain.leastIn[unit], chain.leastOut[unit] = here, here
		if unit > 1 {
			least := chain.leastIn[unit-1]
			chain.leastIn[unit] = border{min(here.batch, least.batch), min(here.token, least.token)}
		}
	}
	for unit := count - 2; unit > 0; unit-- {
		here, least := chain.leastOut[unit], chain.leastOut[unit+1]
		chain.leastOut[unit] = border{min(here.batch, least.batch), min(here.token, least.token)}
	}
}

// Peak is a device's arena, as of [arenaEvents], with this workspace if it runs products.
func (chain *arenaChain) Peak(place Rank, workspace int64) int64 {
	var sum arenaSum
	for _, at := range place.Chunks {
		if at.First >= at.End {
			continue
		}
		if at.First > 0 {
			sum.in(chain.border(at.First))
		}
		if at.End < len(chain.table.Units) {
			sum.out(chain.border(at.End))
		}
	}
	return chain.peak(&sum, place, workspace, true)
}

// HostBytes is [HostBytes] of a rank.
func (chain *arenaChain) HostBytes(place Rank) (bytes int64) {
	if len(chain.moved) == 0 {
		return 0
	}
	for i, at := range place.Chunks {
		bytes += chain.depths(place)[i].Late * (chain.sums[at.End].out - chain.sums[at.First].out)
	}
	return bytes
}

// Floor is a lower bound of [arenaChain.Peak] for the device and for any that holds more units: at
// an end of the model a run has no message, and no slots for it. Empty chunks may be filled. If
// grows, the device's runs may reach any unit. In a pipeline with a unit on every rank, only the
// first rank may reach the first unit, and only the last rank the last.
func (chain *arenaChain) Floor(place Rank, workspace int64, grows bool) int64 {
	var sum arenaSum
	for _, at := range place.Chunks {
		switch {
		case at.First >= at.End:
		case grows && place.Schedule.Kind == "":
		default:
			chain.leastOf(&sum, place, at, grows)
		}
	}
	return chain.peak(&sum, place, workspace, false)
}

func (chain *arenaChain) leastOf(sum *arenaSum, place Rank, at costmodel.Interval, grows bool) {
	count := len(chain.table.Units)
	switch {
	case at.First > 0 && !grows:
		sum.in(chain.border(at.First))
	case at.First > 0 && place.Index > 0:
		sum.in(chain.leastIn[at.First])
	}
	switch {
	case at.End < count && !grows:
		sum.out(chain.border(at.End))
	case place.Index < place.Schedule.Stages-1:
		sum.out(chain.leastOut[min(at.End, count-1)])
	}
}

// arenaSum is a device's figures as far as they were added up.
type arenaSum struct {
	entering, leaving, entered int64 // messages in and out, and in of a token
	results, passed, scratch   int64
	moved                      int64
	products                   int
	stack                      arenaStack
}

func (sum *arenaSum) in(message border) {
	sum.entering += message.batch
	sum.entered += message.token
}

func (sum *arenaSum) out(message border) { sum.leaving += message.batch }

// peak adds the regions up. A floor omits tied gradients of uses elsewhere, which may move here.
func (chain *arenaChain) peak(sum *arenaSum, place Rank, workspace int64, exact bool) int64 {
	all, occupied := chain.inputs(place.Chunks)
	if !occupied || chain.mode == costmodel.Load {
		return all
	}
	all += chain.messages(sum, place)
	train := chain.mode == costmodel.Train
	if train && exact {
		all += chain.tiedSlots(place.Chunks)
	}
	rings := train && !stacked(&chain.table.Workload, place.Schedule)
	for i, at := range place.Chunks {
		if at.First < at.End {
			chain.run(sum, at)
			if rings {
				sum.moved = max(sum.moved, chain.moved.max(at.First, at.End))
				if chain.depths(place)[i].Whole > 0 {
					sum.scratch = max(sum.scratch, chain.whole.max(at.First, at.End))
				}
				before, end := &chain.sums[at.First], &chain.sums[at.End]
				depth := chain.depths(place)[i]
				all += end.grads - before.grads + depth.Saved*(end.saved-before.saved) + depth.Late*(end.late-before.late) + depth.Pending*(end.pending-before.pending)
			}
		}
	}
	all += sum.results + sum.passed + chain.sets*sum.moved
	if sum.products > 0 {
		all += aligned(workspace)
	}
	if train && !rings {
		return all + sum.stack.size()
	}
	return all + sum.scratch
}

// messages are the slots of incoming messages and the buffers of outgoing ones; in training with
// the norms, their slot, and their sum.
func (chain *arenaChain) messages(sum *arenaSum, place Rank) int64 {
	slots := arenaSlots(chain.table, place.Schedule)
	all := slots*sum.entering + sum.leaving
	if chain.mode == costmodel.Train {
		all += slots*sum.leaving + sum.entering + 2*chain.norms + costmodel.RegionAlign
	}
	if chain.ids > 0 {
		all += slots*sum.entered + chain.idBuffers(place)
	}
	return all
}

// run adds what else a run of units has.
func (chain *arenaChain) run(sum *arenaSum, at costmodel.Interval) {
	before, end := &chain.sums[at.First], &chain.sums[at.End]
	sum.results += end.results - before.results
	sum.products += end.products - before.products
	if end.runs-before.runs > 1 {
		sum.passed = max(sum.passed, chain.output.max(at.First, chain.before[at.End]))
	}
	sum.scratch = max(sum.scratch, chain.scratch.max(at.First, at.End))
	if chain.mode == costmodel.Train {
		sum.stack = sum.stack.join(chain.stack.of(at, chain.keeps[at.End], chain.sums))
	}
}

// inputs is what there is throughout, less gradients; false if there is no unit.
func (chain *arenaChain) inputs(chunks []costmodel.Interval) (all int64, inputs bool) {
	for _, at := range chunks {
		if at.First < at.End {
			inputs = true
			all += chain.sums[at.End].throughout - chain.sums[at.First].throughout
		}
	}
	for i := range chain.ties {
		tie := &chain.ties[i]
		if containsAny(chunks, tie.uses[1:]) > 0 && containsAny(chunks, tie.uses[:1]) == 0 {
			all += tie.Weights
			if chain.mode == costmodel.Train {
				all += tie.Master + tie.State
			}
		}
	}
	return all, inputs
}

// tiedSlots are the slots for gradients that other devices make of tied weights used here.
func (chain *arenaChain) tiedSlots(chunks []costmodel.Interval) (all int64) {
	for i := range chain.ties {
		tie := &chain.ties[i]
		if here := containsAny(chunks, tie.uses); here > 0 {
			all += (int64(len(tie.uses)) - here) * tie.Grads
		}
	}
	return all
}

// containsAny is how many of these units there are in the chunks.
func containsAny(chunks []costmodel.Interval, units []int) (count int64) {
	for _, unit := range units {
		if slices.ContainsFunc(chunks, func(at costmodel.Interval) bool { return at.First <= unit && unit < at.End }) {
			count++
		}
	}
	return count
}

// idBuffers are the buffers of new tokens' ids: of all micro-batches if they are embedded here, of
// one if they are generated here.
func (chain *arenaChain) idBuffers(place Rank) int64 {
	switch {
	case containsAny(place.Chunks, []int{chain.ends.first}) > 0:
		return place.Schedule.MicroBatches * chain.ids
	case containsAny(place.Chunks, []int{chain.ends.last}) > 0:
		return chain.ids
	}
	return 0
}

// depths are the micro-batches in flight, computed once a rank.
func (chain *arenaChain) depths(place Rank) []order.Depth {
	if place.Schedule.Kind == "" { // one after another
		return slices.Repeat([]order.Depth{{Saved: 1, Late: 1, Pending: 1}}, len(place.Chunks))
	}
	if chain.answer == nil || chain.asked != place.Schedule {
		if chain.inFlight[place.Schedule] == nil {
			chain.inFlight[place.Schedule] = make([][]order.Depth, place.Schedule.Stages)
		}
		chain.asked, chain.answer = place.Schedule, chain.inFlight[place.Schedule]
	}
	known := &chain.answer[place.Index]
	if *known == nil {
		*known = order.Depths(max(1, place.Schedule.Chunks), order.Phases(place.Schedule, place.Index)...)
	}
	return *known
}
