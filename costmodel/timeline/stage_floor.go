package timeline

import "github.com/devmap-dev/devmap/costmodel"

// Floor is a lower bound of [stageChain.Peak] for the rank and for any that holds more units. The
// peak alone is none: a further unit with a smaller message may lower it. Empty chunks may be
// filled. If grows, the rank has one chunk, which may grow on both sides.
//
// There is no padding, as the grown rank may end the model.
func (chain *stageChain) Floor(place Rank, workspace int64, grows bool) int64 {
	sum := rankSum{value: append(chain.value[:0], 0)}
	if grows && place.Chunks[0].First < place.Chunks[0].End {
		part := chain.leastSpan(place)
		sum.add(&part)
	} else {
		for _, at := range place.Chunks {
			sum.chunk(chain, at)
		}
	}
	sum.padding = 0
	return chain.peak(&sum, place, workspace)
}

// leastSpan is the least of all stages with these units. Every rank has a unit, so all but the
// first receive messages and all but the last send them. Inner units are the same in any longer
// stage. The first and last unit have the least of their forms, and messages the smallest size that
// a longer stage can have.
func (chain *stageChain) leastSpan(place Rank) span {
	at, count := place.Chunks[0], len(chain.table.Units)
	var part span
	part.rotary = chain.table.Rotary
	rules := costmodel.StageRulesOf(chain.table.Workload.Runtime)
	head, tail := 0, 0
	if at.First > 0 {
		head = received
		if place.Index > 0 && !rules.Passing {
			part.in = chain.leastIn[at.First]
		}
	}
	if at.End < count {
		tail = sends
	}
	switch {
	case rules.Passing:
	case place.Index < place.Schedule.Stages-1:
		part.out = chain.leastOut[at.End-1]
		if rules.KeepsOutputs {
			part.own = part.out
		}
	case at.End == count && rules.MergesOutputs:
		part.logits = chain.table.Units[count-1].Output
	}
	chain.first.least(&part.first, &chain.firstForms, at, head, tail)
	chain.again.least(&part.again, &chain.againForms, at, head, tail)
	return part
}

// leastMessages fills in leastIn and leastOut.
func (chain *stageChain) leastMessages() {
	units := chain.table.Units
	count := len(units)
	chain.leastIn, chain.leastOut = make([]int64, count), make([]int64, count)
	for unit := 1; unit < count; unit++ {
		chain.leastIn[unit] = units[unit-1].Output
		if unit > 1 {
			chain.leastIn[unit] = min(chain.leastIn[unit], chain.leastIn[unit-1])
		}
	}
	for unit := count - 2; unit >= 0; unit-- {
		chain.leastOut[unit] = units[unit].Output
		if unit < count-2 {
			chain.leastOut[unit] = min(chain.leastOut[unit], chain.leastOut[unit+1])
		}
	}
	if count > 1 {
		chain.leastOut[count-1] = chain.leastOut[count-2]
	}
}

// least is [unitChain.fill] with the least forms of the first and last unit: head and tail are
// [received] and [sends] if the unit may have that form.
func (chain *unitChain) least(out *Summary, forms *[4][]Summary, at costmodel.Interval, head, tail int) {
	first, last := at.First, at.End-1
	if first == last {
		*out = forms[0][first].Least(forms[head][first]).Least(forms[tail][first].Least(forms[head|tail][first]))
		return
	}
	begin, end := forms[0][first].Least(forms[head][first]), forms[0][last].Least(forms[tail][last])
	chain.between(out, &begin, at, &end)
}
