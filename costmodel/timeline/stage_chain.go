package timeline

import "github.com/devmap-dev/devmap/costmodel"

// StageChain answers what a stage of any stretch of the chain peaks at,
// in O(1) for one stage a device, and in O(actions) for several: [Chain] for
// the units inside a stretch, and the forms of its first and last unit, which
// meet the stage's buffers. One goroutine may ask it at a time.
type StageChain struct {
	table      *costmodel.Table
	first      *Chain // with no gradients yet
	again      *Chain // with all of them
	firstForms [4][]Summary
	againForms [4][]Summary
	rotary     int64
	padding    []int64 // prefix sums of StatePadding
	// leastIn and leastOut are the smallest message into a stage that begins
	// at a unit or before it, and out of one that ends behind it or later.
	leastIn, leastOut []int64
	train, load       bool
	made              map[ranked][]costmodel.Phase
}

// The forms of a unit: whether its input, and its output, is a message.
const (
	received = 1 << iota
	sends
)

// NewStageChain prepares the units of a table.
func NewStageChain(t *costmodel.Table) *StageChain {
	c := &StageChain{table: t, train: t.Workload.Mode == costmodel.Train, load: t.Workload.Mode == costmodel.Load}
	if t.Pipe != nil {
		c.rotary = t.Pipe.Rotary
	}
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
	c.messages()
	return c
}

// span is a stage's closed form.
type span struct {
	first, again Summary
	in, out      int64 // messages
	own          int64 // of a micro-batch's output, kept to the end of its backward
	logits       int64 // of the last stage's, kept to the next step
	last         bool
	padding      int64 // of gradients and states, but where the loss is
}

func (c *StageChain) span(s costmodel.Interval) span {
	units := c.table.Units
	var out span
	form := 0
	if s.First > 0 {
		form = received
		out.in = units[s.First-1].Output
	}
	if s.End < len(units) {
		form |= sends
		out.own = units[s.End-1].Output
		out.out = out.own
	} else {
		out.logits, out.last = units[s.End-1].Output, true
	}
	out.padding = c.padding[s.End] - c.padding[s.First]
	out.first = stretch(c.first, &c.firstForms, s, form)
	out.again = stretch(c.again, &c.againForms, s, form)
	return out
}

func stretch(c *Chain, forms *[4][]Summary, s costmodel.Interval, form int) Summary {
	if s.End-s.First == 1 {
		return forms[form][s.First]
	}
	head, tail := forms[form&received][s.First], forms[form&sends][s.End-1]
	if s.End-s.First == 2 {
		return head.Join(tail)
	}
	return head.Join(c.Summary(s.First+1, s.End-1)).Join(tail)
}

// kept is what a micro-batch in flight holds.
func (c *StageChain) kept(s *span) int64 { return s.first.Saved + c.rotary + s.own }

// static is what a stage holds throughout.
func (c *StageChain) static(s *span, m int64) int64 {
	n := s.first.Static
	if c.load {
		return n
	}
	n += m * s.in
	if c.train {
		n += m * s.out
	}
	return n
}

// Peak is the peak of a stage that is alone on its device: [StagePeak]
// of it, by GPipe or 1F1B. The workspace is that of a device that runs
// products.
//
// With w micro-batches in flight, K kept of each, R its cosines and sines, o
// its output, G the gradients, L the logits of one (last stage):
//
//	first forwards   (w−1)(K+L) + R + forward
//	later forwards   (w−1)K + (m−1)L + G + sent + R + forward
//	first backward   (w−1)K + wL + R + o + backward
//	later backwards  (w−1)K + mL + G + sent + R + o + backward again
func (c *StageChain) Peak(s costmodel.Schedule, rank int64, at costmodel.Interval, workspace int64) int64 {
	if at.First >= at.End {
		return 0
	}
	p := c.span(at)
	return c.peak(&p, s, rank, workspace)
}

func (c *StageChain) peak(p *span, s costmodel.Schedule, rank, workspace int64) int64 {
	m, r := s.MicroBatches, &p.first
	var most int64
	switch {
	case c.load:
	case c.train:
		most = c.training(p, s, rank)
	default:
		each := p.own + p.logits
		most = max((m-1)*each+c.rotary+max(r.Forward, r.Late), m*each+m*p.logits)
	}
	if r.Products && !c.load {
		most += workspace
	}
	if !p.last && !c.load {
		most += p.padding
	}
	return c.static(p, m) + most
}

func (c *StageChain) training(p *span, s costmodel.Schedule, rank int64) int64 {
	m, w := s.MicroBatches, s.InFlight(rank)
	r, grads, logits, kept := &p.first, p.first.Grads, p.logits, c.kept(p)
	most := max(
		(w-1)*(kept+logits)+c.rotary+r.Forward,
		w*(kept+logits),
		(w-1)*kept+w*logits+c.rotary+p.own+r.Backward,
		grads+2*m*logits, // merging of outputs
		grads+m*logits+r.StepTransient,
	)
	if m == 1 {
		return most
	}
	sent := int64(0)
	if s.Kind == costmodel.OneFOneB {
		sent = p.in
	}
	flying := w - 1 // at the second backward
	if m > w {
		flying = w
		most = max(most, (w-1)*kept+(m-1)*logits+grads+sent+c.rotary+r.Forward, w*kept+m*logits+grads+sent)
	}
	return max(most, (flying-1)*kept+m*logits+grads+sent+c.rotary+p.own+p.again.Backward)
}
