package timeline

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/order"
)

// StageChain answers for any rank of a pipeline without its units, which a
// [Pipeline] tells one by one: by a [Chain] for the units inside a stage, the
// summaries of its first and last unit, which meet the stage's buffers, and
// a closed form for each schedule and rank that it is asked for. An answer
// takes O(1) for each stage and for each moment of the form, whatever the
// number of micro-batches. One goroutine may ask at a time.
type StageChain struct {
	table      *costmodel.Table
	first      *Chain // with no gradients yet
	again      *Chain // with all of them
	firstForms [4][]Summary
	againForms [4][]Summary
	padding    []int64 // prefix sums of StatePadding
	// leastIn and leastOut are the smallest message into a stage that begins
	// at a unit or before it, and out of one that ends behind it or later.
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

// NewStageChain prepares the units of a table.
func NewStageChain(t *costmodel.Table) *StageChain {
	c := &StageChain{table: t, forms: map[ranked]*closed{}}
	again := make([]costmodel.Unit, len(t.Units))
	c.padding = make([]int64, len(t.Units)+1)
	for u := range t.Units {
		c.padding[u+1] = c.padding[u] + t.Units[u].StatePadding
		again[u] = accumulating(&t.Units[u])
		for form := range 4 {
			var unit costmodel.Unit
			if u > 0 || form&received == 0 {
				unit = staged(t, u, form&received != 0, form&sends != 0)
			}
			more := accumulating(&unit)
			c.firstForms[form] = append(c.firstForms[form], Of(&unit))
			c.againForms[form] = append(c.againForms[form], Of(&more))
		}
	}
	c.first, c.again = NewChain(t.Units), NewChain(again)
	c.leastMessages()
	return c
}

// span is a chunk in summaries.
type span struct {
	chunk
	first, again Summary
}

func (c *StageChain) span(at costmodel.Interval) span {
	var s span
	s.messages(c.table, at)
	form := 0
	if at.First > 0 {
		form |= received
	}
	if !s.ends {
		form |= sends
	}
	s.padding = c.padding[at.End] - c.padding[at.First]
	s.first = stretchOf(c.first, &c.firstForms, at, form)
	s.again = stretchOf(c.again, &c.againForms, at, form)
	return s
}

func stretchOf(chain *Chain, forms *[4][]Summary, at costmodel.Interval, form int) Summary {
	if at.End-at.First == 1 {
		return forms[form][at.First]
	}
	return chain.between(forms[form&received][at.First], at, forms[form&sends][at.End-1])
}

// between is a stretch whose first and last unit are not those of the chain.
func (c *Chain) between(first Summary, at costmodel.Interval, last Summary) Summary {
	if at.End-at.First > 2 {
		first = first.Join(c.Summary(at.First+1, at.End-1))
	}
	return first.Join(last)
}

// Peak is the peak of a rank: that of its [Pipeline], on a device that has
// this workspace where it runs products.
func (c *StageChain) Peak(place Rank, workspace int64) int64 {
	sum := rankSum{value: append(c.value[:0], 0)}
	for _, at := range place.Chunks {
		sum.chunk(c, at)
	}
	if sum.ends {
		sum.padding = 0 // that of ranks without the loss
	}
	return c.peak(&sum, place, workspace)
}

func (c *StageChain) peak(sum *rankSum, place Rank, workspace int64) int64 {
	c.value = sum.value
	if c.table.Workload.Mode == costmodel.Load {
		return sum.throughout
	}
	sum.throughout += sum.padding
	if sum.products {
		sum.throughout += workspace
	}
	c.value[0] = sum.throughout
	return c.formOf(ranked{place.Schedule, place.Index}).peak(c.value)
}

// rankSum are the figures of a rank's closed form.
type rankSum struct {
	value               []int64
	throughout, padding int64
	products, ends      bool
}

// The figures of a chunk in a rank's closed form, after one of what is there
// throughout.
const (
	chunkSaved = iota
	chunkGrads
	chunkForward
	chunkBackward
	chunkAgain
	chunkLate
	chunkStep
	chunkIn
	chunkOut
	chunkOwn
	chunkLogits
	chunkRotary
	chunkFigures
)

// chunk adds the units at an interval; none, where it is empty.
func (r *rankSum) chunk(c *StageChain, at costmodel.Interval) {
	if at.First >= at.End {
		r.add(&span{})
		return
	}
	s := c.span(at)
	r.add(&s)
}

func (r *rankSum) add(s *span) {
	r.throughout += s.first.Static
	r.padding += s.padding
	r.products = r.products || s.first.Products
	r.ends = r.ends || s.ends
	of := [chunkFigures]int64{
		chunkSaved: s.first.Saved, chunkGrads: s.first.Grads, chunkForward: s.first.Forward, chunkBackward: s.first.Backward,
		chunkAgain: s.again.Backward, chunkLate: s.first.HeadPeak, chunkStep: s.first.StepTransient,
		chunkIn: s.in, chunkOut: s.out, chunkOwn: s.own, chunkLogits: s.logits, chunkRotary: s.rotary,
	}
	r.value = append(r.value, of[:]...)
}

// ranked is a rank of a schedule.
type ranked struct {
	schedule costmodel.Schedule
	rank     int64
}

// formOf is a rank's closed form, made once: a search asks for the same ranks
// over and over.
func (c *StageChain) formOf(key ranked) *closed {
	if c.form != nil && c.asked == key {
		return c.form
	}
	form, ok := c.forms[key]
	if !ok {
		form = rankClosed(c.table.Workload.Mode, key)
		c.forms[key] = form
	}
	c.asked, c.form = key, form
	return form
}

// rankClosed is the closed form of any rank at this place of a schedule.
func rankClosed(mode costmodel.Mode, at ranked) *closed {
	chunks := int(max(1, at.schedule.Chunks))
	r := rank{mode: mode, schedule: at.schedule, phases: order.Phases(at.schedule, at.rank), chunks: make([]chunk, chunks)}
	form := newClosed(1+chunks*chunkFigures, func(value []int64) Producer {
		for i := range r.chunks {
			of := value[1+i*chunkFigures:]
			first := Summary{
				Saved: of[chunkSaved], Grads: of[chunkGrads], Forward: of[chunkForward], Backward: of[chunkBackward],
				HeadPeak: of[chunkLate], StepTransient: of[chunkStep],
			}
			if i == 0 {
				first.Static = value[0]
			}
			again := Summary{Saved: of[chunkSaved], Backward: of[chunkAgain]}
			r.chunks[i] = chunk{
				first: &first, again: &again, ends: true, in: of[chunkIn], out: of[chunkOut],
				own: of[chunkOwn], logits: of[chunkLogits], rotary: of[chunkRotary],
			}
		}
		return r.events
	})
	return &form
}
