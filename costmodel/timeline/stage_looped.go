package timeline

import "github.com/devmap-dev/devmap/costmodel"

// Looped is the peak of a rank with several stages, by its actions and the
// closed form of each stage: [StagePeak] without its units.
func (c *StageChain) Looped(place Rank, workspace int64) int64 {
	return c.looped(place, workspace, true)
}

// LoopedFloor is at most [StageChain.Looped] of the same stages with others in
// the place of empty ones: whether the loss, which changes the allocator's
// rounding, is among those is not known.
func (c *StageChain) LoopedFloor(place Rank, workspace int64) int64 {
	return c.looped(place, workspace, false)
}

func (c *StageChain) looped(place Rank, workspace int64, padded bool) int64 {
	l := looped{c: c, spans: make([]span, len(place.Chunks)), ran: make([]bool, len(place.Chunks))}
	var all int64
	var sum span // of all chunks
	for i, s := range place.Chunks {
		if s.First >= s.End {
			continue
		}
		l.spans[i] = c.span(s)
		p := &l.spans[i]
		all += c.static(p, place.Schedule.MicroBatches)
		sum.logits += p.logits
		sum.padding += p.padding
		sum.last = sum.last || p.last
		sum.first.Products = sum.first.Products || p.first.Products
		sum.first.StepTransient += p.first.StepTransient
	}
	if c.load {
		return all
	}
	for _, p := range c.phases(place.Schedule, place.Index) {
		var before int64
		p.Ends(func(a costmodel.Action) {
			if s := place.Chunks[a.Chunk]; s.First < s.End {
				l.run(a)
			}
		}, func() { before = l.now }, func(times int64) { l.now += times * (l.now - before) })
	}
	l.see(place.Schedule.MicroBatches * sum.logits)
	if c.train {
		l.see(sum.first.StepTransient)
	}
	if sum.first.Products {
		all += workspace
	}
	if padded && !sum.last {
		all += sum.padding
	}
	return all + l.most
}

// ranked is a rank of a schedule.
type ranked struct {
	costmodel.Schedule
	rank int64
}

// phases are [costmodel.Schedule.Phases], made once: a search asks for the same ranks
// over and over.
func (c *StageChain) phases(s costmodel.Schedule, rank int64) []costmodel.Phase {
	key := ranked{s, rank}
	if c.made == nil {
		c.made = map[ranked][]costmodel.Phase{}
	}
	p, ok := c.made[key]
	if !ok {
		p = s.Phases(rank)
		c.made[key] = p
	}
	return p
}

// looped is a rank at one moment: now above what is there throughout.
type looped struct {
	c         *StageChain
	spans     []span
	ran       []bool // by chunk: its parameters have gradients
	now, most int64
}

func (l *looped) see(more int64) { l.most = max(l.most, l.now+more) }

func (l *looped) run(a costmodel.Action) {
	p := &l.spans[a.Chunk]
	kept, r := l.c.kept(p), &p.first
	switch {
	case !l.c.train && !a.Backward:
		l.see(l.c.rotary + max(r.Forward, r.Late))
		l.now += p.own + p.logits
		l.see(0)
	case !l.c.train:
	case !a.Backward:
		l.see(l.c.rotary + r.Forward)
		l.now += kept + p.logits
		l.see(0)
	case l.ran[a.Chunk]:
		l.now -= kept
		l.see(l.c.rotary + p.own + p.again.Backward)
	default:
		l.now -= kept
		l.see(l.c.rotary + p.own + r.Backward)
		l.now += r.Grads
		l.ran[a.Chunk] = true
	}
}
