package timeline

import "github.com/devmap-dev/devmap/costmodel"

// Floor is at most [StageChain.Peak] of the same rank, and of every one that
// holds these units and more: what a search may rest on where messages differ
// in size, as a stage then holds less with a unit more where that one hands on
// less. Its empty chunks may be filled; where grows, it has one chunk, to which
// units may be added on both sides.
//
// There is no padding, as the rank may end the model in the end.
func (c *StageChain) Floor(place Rank, workspace int64, grows bool) int64 {
	sum := rankSum{value: append(c.value[:0], 0)}
	if grows && place.Chunks[0].First < place.Chunks[0].End {
		s := c.leastSpan(place)
		sum.add(&s)
	} else {
		for _, at := range place.Chunks {
			sum.chunk(c, at)
		}
	}
	sum.padding = 0
	return c.peak(&sum, place, workspace)
}

// leastSpan is the least of every stage of the rank that holds these units.
// Every rank is taken to have a unit, so that all but the first receive
// messages and all but the last send them. The units inside are what they are
// in any longer stage. The first and the last are the least of what they are at
// a message and away from one, and the messages are the smallest that a longer
// stage can have.
func (c *StageChain) leastSpan(place Rank) span {
	at, n := place.Chunks[0], len(c.table.Units)
	var s span
	if c.table.Pipe != nil {
		s.rotary = c.table.Pipe.Rotary
	}
	head, tail := 0, 0
	if at.First > 0 {
		head = received
		if place.Index > 0 {
			s.in = c.leastIn[at.First]
		}
	}
	if at.End < n {
		tail = sends
	}
	switch {
	case place.Index < place.Schedule.Stages-1:
		s.own = c.leastOut[at.End-1]
		s.out = s.own
	case at.End == n:
		s.logits = c.table.Units[n-1].Output
	}
	s.first = leastOf(c.first, &c.firstForms, at, head, tail)
	s.again = leastOf(c.again, &c.againForms, at, head, tail)
	return s
}

// leastMessages fills in leastIn and leastOut.
func (c *StageChain) leastMessages() {
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

// leastOf is [stretchOf] with the first and the last unit the least of their
// forms: head and tail are [received] and [sends] where the unit may have it.
func leastOf(chain *Chain, forms *[4][]Summary, at costmodel.Interval, head, tail int) Summary {
	first, last := at.First, at.End-1
	if first == last {
		return forms[0][first].Least(forms[head][first]).Least(forms[tail][first].Least(forms[head|tail][first]))
	}
	return chain.between(forms[0][first].Least(forms[head][first]), at, forms[0][last].Least(forms[tail][last]))
}
