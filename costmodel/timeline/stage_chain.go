package timeline

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// stageChain computes any pipeline rank's peak without walking its units ([RankStep] does). It has
// a [unitChain] for the units inside a stage, summaries of its first and last unit, and a closed
// form for each schedule and rank. An answer takes O(1) for each stage and each moment of the form,
// whatever the number of micro-batches. It is not safe for concurrent use.
type stageChain struct {
	table      *costmodel.Table
	first      *unitChain // with no gradients yet
	again      *unitChain // with all of them
	firstForms [4][]Summary
	againForms [4][]Summary
	padding    []int64 // prefix sums of StatePadding
	shared     bool    // its parameters are cut over replicas
	// leastIn is the smallest message into a stage that begins at a unit or before it, leastOut out
	// of one that ends after it or later.
	leastIn, leastOut []int64

	forms map[ranked]*closed
	asked ranked // last, and its form
	form  *closed
	value []int64 // reused
}

// The forms of a unit: whether its input, and its output, is a message.
const (
	received = 1 << iota
	sends
)

// newStageChain prepares the units of a table.
func newStageChain(table *costmodel.Table) *stageChain {
	chain := &stageChain{table: table, forms: map[ranked]*closed{}}
	again := make([]costmodel.Unit, len(table.Units))
	var reading folding
	add := reading.add
	shards := newStageShards(table)
	chain.shared = shards != nil
	chain.padding = make([]int64, len(table.Units)+1)
	for unitIndex := range table.Units {
		chain.padding[unitIndex+1] = chain.padding[unitIndex] + table.Units[unitIndex].StatePadding
		again[unitIndex] = accumulating(&table.Units[unitIndex])
		for form := range 4 {
			var unit costmodel.Unit
			if unitIndex > 0 || form&received == 0 {
				unit = staged(table, unitIndex, form&received != 0, form&sends != 0)
			}
			more := accumulating(&unit)
			summary := reading.of(&unit, add)
			shards.summarise(&summary, &unit, unitIndex)
			chain.firstForms[form] = append(chain.firstForms[form], summary)
			chain.againForms[form] = append(chain.againForms[form], reading.of(&more, add))
		}
	}
	chain.first, chain.again = newUnitChain(table.Units), newUnitChain(again)
	chain.first.share(shards, table.Units)
	chain.leastMessages()
	return chain
}

// span is a chunk in summaries.
type span struct {
	chunk
	first, again Summary
}

// span fills in the units at an interval.
func (chain *stageChain) span(part *span, at costmodel.Interval) {
	part.messages(chain.table, at)
	form := 0
	if at.First > 0 {
		form |= received
	}
	if !part.ends {
		form |= sends
	}
	part.padding = chain.padding[at.End] - chain.padding[at.First]
	chain.first.fill(&part.first, &chain.firstForms, at, form)
	chain.again.fill(&part.again, &chain.againForms, at, form)
}

// fill takes the units at an interval; its first and last unit have this form.
func (chain *unitChain) fill(out *Summary, forms *[4][]Summary, at costmodel.Interval, form int) {
	if at.End-at.First == 1 {
		*out = forms[form][at.First]
		return
	}
	chain.between(out, &forms[form&received][at.First], at, &forms[form&sends][at.End-1])
}

// between is a stretch with its own summaries for the first and last unit.
func (chain *unitChain) between(out, first *Summary, at costmodel.Interval, last *Summary) {
	*out = *first
	if at.End-at.First > 2 {
		inside := chain.summary(at.First+1, at.End-1)
		out.add(&inside)
	}
	out.add(last)
}

// Peak is a rank's peak, as of [pipelineEvents], on a device with this workspace if it runs products.
func (chain *stageChain) Peak(place Rank, workspace int64) int64 {
	sum := rankSum{value: append(chain.value[:0], 0)}
	for _, at := range place.Chunks {
		sum.chunk(chain, at)
	}
	if sum.ends {
		sum.padding = 0 // only for ranks without the loss
	}
	return chain.peak(&sum, place, workspace)
}

func (chain *stageChain) peak(sum *rankSum, place Rank, workspace int64) int64 {
	chain.value = sum.value
	if chain.table.Workload.Mode == costmodel.Load {
		return sum.throughout
	}
	sum.throughout += sum.padding
	if sum.products {
		sum.throughout += workspace
	}
	chain.value[0] = sum.throughout
	return chain.formOf(ranked{place.Schedule, place.Index}).peak(chain.value)
}

// rankSum are the figures of a rank's closed form.
type rankSum struct {
	value               []int64
	throughout, padding int64
	products, ends      bool
}

// The figures of a chunk in a rank's closed form, after the figure of the memory throughout.
const (
	chunkSaved = iota
	chunkGrads
	chunkForward
	chunkBackward
	chunkAgain
	chunkHead
	chunkStep
	chunkIn
	chunkOut
	chunkOwn
	chunkLogits
	chunkRotary
	chunkGathering
	chunkGathered
	chunkReducing
	chunkReduced
	chunkFigures
)

// chunk adds the units at an interval; none, if it is empty.
func (sum *rankSum) chunk(chain *stageChain, at costmodel.Interval) {
	if at.First >= at.End {
		sum.add(&span{})
		return
	}
	var part span
	chain.span(&part, at)
	sum.add(&part)
}

func (sum *rankSum) add(part *span) {
	sum.throughout += part.first.Static
	sum.padding += part.padding
	sum.products = sum.products || part.first.Products
	sum.ends = sum.ends || part.ends
	of := [chunkFigures]int64{
		chunkSaved: part.first.Saved, chunkGrads: part.first.Grads, chunkForward: part.first.Forward,
		chunkBackward: part.first.Backward, chunkAgain: part.again.Backward, chunkHead: part.first.HeadPeak, chunkStep: part.first.StepTransient,
		chunkIn: part.in, chunkOut: part.out, chunkOwn: part.own, chunkLogits: part.logits, chunkRotary: part.rotary,
		chunkGathering: part.first.Gathering, chunkGathered: part.first.Gathered, chunkReducing: part.first.Reducing, chunkReduced: part.first.Reduced,
	}
	sum.value = append(sum.value, of[:]...)
}

// ranked is a rank of a schedule.
type ranked struct {
	schedule costmodel.Schedule
	rank     int64
}

// formOf is a rank's closed form, made once: a search asks for the same ranks over and over.
func (chain *stageChain) formOf(key ranked) *closed {
	if chain.form != nil && chain.asked == key {
		return chain.form
	}
	form, ok := chain.forms[key]
	if !ok {
		form = rankClosed(&chain.table.Workload, key, chain.shared)
		chain.forms[key] = form
	}
	chain.asked, chain.form = key, form
	return form
}

// rankClosed is the closed form of any rank at this place of a schedule.
func rankClosed(workload *costmodel.Workload, at ranked, shared bool) *closed {
	chunks := int(max(1, at.schedule.Chunks))
	r := rank{mode: workload.Mode, rules: costmodel.StageRulesOf(workload.Runtime), schedule: at.schedule, phases: order.Phases(at.schedule, at.rank), chunks: make([]chunk, chunks)}
	first, again := make([]Summary, chunks), make([]Summary, chunks)
	form := newClosed(1+chunks*chunkFigures, func(value []int64) producer {
		for i := range r.chunks {
			of := value[1+i*chunkFigures:]
			first[i] = Summary{
				Saved: of[chunkSaved], Grads: of[chunkGrads], Forward: of[chunkForward], Backward: of[chunkBackward],
				HeadPeak: of[chunkHead], StepTransient: of[chunkStep],
				Gathering: of[chunkGathering], Gathered: of[chunkGathered], Reducing: of[chunkReducing], Reduced: of[chunkReduced],
			}
			if i == 0 {
				first[i].Static = value[0]
			}
			again[i] = Summary{Saved: of[chunkSaved], Backward: of[chunkAgain]}
			r.chunks[i] = chunk{
				first: &first[i], again: &again[i], ends: true, in: of[chunkIn], out: of[chunkOut],
				own: of[chunkOwn], logits: of[chunkLogits], rotary: of[chunkRotary],
			}
			if shared {
				r.chunks[i].shared = &first[i]
			}
		}
		return r.events
	})
	return &form
}
