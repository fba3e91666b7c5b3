package timeline

import "github.com/devmap-dev/devmap/costmodel"

// Floor is at most [StageChain.Peak] of the same stage, and of every stage of
// the rank that holds these units and more: what a search may rest on where
// messages differ in size, as a stage then holds less with a unit more where
// that one hands on less. Every rank is taken to have a unit, so that all but
// the first receive messages and all but the last send them.
//
// The units inside are what they are in any longer stage. The first and the
// last are the least of what they are at a message and away from one, and the
// messages are the smallest that a longer stage can have. There is no padding,
// as a longer stage may end the model.
func (c *StageChain) Floor(s costmodel.Schedule, rank int64, at costmodel.Interval, workspace int64) int64 {
	if at.First >= at.End {
		return 0
	}
	n := len(c.table.Units)
	var p span
	head, tail := 0, 0
	if at.First > 0 {
		head = received
		if rank > 0 {
			p.in = c.leastIn[at.First]
		}
	}
	if at.End < n {
		tail = sends
	}
	switch {
	case rank < s.Stages-1:
		p.own = c.leastOut[at.End-1]
		p.out = p.own
	case at.End == n:
		p.logits = c.table.Units[n-1].Output
	}
	p.first = floorOf(c.first, &c.firstForms, at, head, tail)
	p.again = floorOf(c.again, &c.againForms, at, head, tail)
	return c.peak(&p, s, rank, workspace)
}

// messages fills in leastIn and leastOut.
func (c *StageChain) messages() {
	units := c.table.Units
	n := len(units)
	c.leastIn, c.leastOut = make([]int64, n), make([]int64, n)
	for u := 1; u < n; u++ {
		c.leastIn[u] = units[u-1].Output
		if u > 1 {
			c.leastIn[u] = min(c.leastIn[u], c.leastIn[u-1])
		}
	}
	for u := n - 2; u >= 0; u-- {
		c.leastOut[u] = units[u].Output
		if u < n-2 {
			c.leastOut[u] = min(c.leastOut[u], c.leastOut[u+1])
		}
	}
	if n > 1 {
		c.leastOut[n-1] = c.leastOut[n-2]
	}
}

// floorOf is [stretch] with the first and the last unit the least of their
// forms: head and tail are [received] and [sends] where the unit may have it.
func floorOf(c *Chain, forms *[4][]Summary, s costmodel.Interval, head, tail int) Summary {
	if s.End-s.First == 1 {
		u := s.First
		return least(least(forms[0][u], forms[head][u]), least(forms[tail][u], forms[head|tail][u]))
	}
	first, last := least(forms[0][s.First], forms[head][s.First]), least(forms[0][s.End-1], forms[tail][s.End-1])
	if s.End-s.First == 2 {
		return first.Join(last)
	}
	return first.Join(c.Summary(s.First+1, s.End-1)).Join(last)
}

// least is below both runs, figure by figure. What depends on no message is
// the same in both.
func least(r, s Summary) Summary {
	r.Saved, r.Grads = min(r.Saved, s.Saved), min(r.Grads, s.Grads)
	r.Forward, r.Backward, r.Late = min(r.Forward, s.Forward), min(r.Backward, s.Backward), min(r.Late, s.Late)
	return r
}
