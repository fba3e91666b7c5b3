package steptime

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// The obvious forms: every action of every micro-batch in its turn. They judge the forms that take
// the time and memory of a few, and share nothing with them but the schedule.

// pipe is a schedule on stages.
type pipe struct {
	costmodel.Schedule
	train  bool
	stages []Stage
}

func (p *pipe) ends() []float64 {
	return Simulate(p.Schedule, p.train, p.stages)
}

// simulated is one forward or backward of a micro-batch on a stage.
type simulated struct {
	stage, batch int
	backward     bool
}

// own is the action of a rank; nil if it leaves it out.
func (p *pipe) own(rank int, a order.Action) *simulated {
	chunk := int64(0)
	for i := range p.stages {
		if p.stages[i].Rank != rank {
			continue
		}
		if chunk == a.Chunk && (p.train || a.Kind == order.Forward) {
			return &simulated{i, int(a.MicroBatch), a.Kind == order.Backward}
		}
		chunk++
	}
	return nil
}

// inOrder runs every rank's actions in order and returns each rank's end. Hosts do not wait for
// messages: streams do.
func (p *pipe) inOrder() []float64 {
	done := map[simulated]float64{}
	end, host := make([]float64, p.Stages), make([]float64, p.Stages)
	orders := make([][]*simulated, p.Stages)
	for rank := range orders {
		for _, a := range order.Of(p.Schedule, int64(rank)) {
			if own := p.own(rank, a); own != nil {
				orders[rank] = append(orders[rank], own)
			}
		}
	}
	for moved := true; moved; {
		moved = false
		for rank := range orders {
			for len(orders[rank]) > 0 {
				a := *orders[rank][0]
				ready, ok := p.ready(done, a)
				if !ok {
					break
				}
				issue, length := p.stages[a.stage].Issue, p.stages[a.stage].Forward
				if a.backward {
					issue, length = p.stages[a.stage].IssueBack, p.stages[a.stage].Backward
				}
				host[rank] += issue
				end[rank] = max(max(end[rank], ready)+length, host[rank])
				done[a], orders[rank], moved = end[rank], orders[rank][1:], true
			}
		}
	}
	return end
}

// ready is when an action's input arrives; false while what makes it has not run.
func (p *pipe) ready(done map[simulated]float64, a simulated) (float64, bool) {
	from, message := simulated{a.stage - 1, a.batch, false}, 0.
	switch {
	case a.backward && a.stage == len(p.stages)-1:
		from = simulated{a.stage, a.batch, false}
	case a.backward:
		from, message = simulated{a.stage + 1, a.batch, true}, p.stages[a.stage].From
	case a.stage == 0:
		return 0, true
	default:
		message = p.stages[a.stage-1].To
	}
	t, ok := done[from]
	return t + message, ok
}

// lockStepInFull is when each rank ends an interleaved schedule by the whole of its table.
func (p *pipe) lockStepInFull() []float64 {
	steps, longest := make([][]*simulated, p.Stages), 0
	for rank := range steps {
		column := order.ColumnOf(p.Schedule, int64(rank))
		steps[rank] = make([]*simulated, column.Length)
		for step := range steps[rank] {
			if a, ok := column.At(int64(step)); ok {
				steps[rank][step] = p.own(rank, a)
			}
		}
		longest = max(longest, len(steps[rank]))
	}
	end, host := make([]float64, p.Stages), make([]float64, p.Stages)
	for step := range longest {
		now := make([]*simulated, p.Stages)
		for rank := range now {
			if step < len(steps[rank]) {
				now[rank] = steps[rank][step]
			}
			if a := now[rank]; a != nil && a.backward {
				host[rank] += p.stages[a.stage].IssueBack
				end[rank] = max(end[rank]+p.stages[a.stage].Backward, host[rank])
			} else if a != nil {
				host[rank] += p.stages[a.stage].Issue
				end[rank] = max(end[rank]+p.stages[a.stage].Forward, host[rank])
			}
		}
		end = p.exchanged(now, end)
	}
	return end
}

// exchanged is when each rank has sent and received what was made in a step.
func (p *pipe) exchanged(now []*simulated, made []float64) []float64 {
	through := slices.Clone(made)
	for rank, a := range now {
		if a == nil {
			continue
		}
		to, message := a.stage+1, p.stages[a.stage].To
		if a.backward {
			if to = a.stage - 1; to >= 0 {
				message = p.stages[to].From
			}
		}
		if to < 0 || to >= len(p.stages) || p.stages[to].Rank == rank {
			continue
		}
		peer := p.stages[to].Rank
		done := max(made[rank], made[peer]) + message
		through[rank], through[peer] = max(through[rank], done), max(through[peer], done)
	}
	return through
}

// randomSchedule is one that its engine takes.
func randomSchedule(rng *rand.Rand, batches int64) costmodel.Schedule {
	s := costmodel.Schedule{Kind: []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe, costmodel.Interleaved}[rng.IntN(3)], Stages: 1 + rng.Int64N(5), Chunks: 1, MicroBatches: 1 + rng.Int64N(batches)}
	if s.Kind == costmodel.Interleaved {
		s.Chunks = 1 + rng.Int64N(4)
	}
	for s.Check() != nil {
		s.MicroBatches++
	}
	return s
}

// randomPipe is a pipeline of stages that take random times, one or several a rank.
func randomPipe(rng *rand.Rand, s costmodel.Schedule) *pipe {
	p := &pipe{Schedule: s, train: rng.IntN(3) > 0}
	whole := func(top int) float64 { return float64(rng.IntN(top)) } // sums of whole numbers do not round
	for i := range s.Stages * s.Chunks {
		p.stages = append(p.stages, Stage{Rank: int(i % s.Stages), Forward: 1 + whole(9), Backward: whole(20), Issue: whole(12), IssueBack: whole(4), To: whole(9), From: whole(9)})
	}
	return p
}

// TestSimulate: by waves and by columns every rank ends when it does action by action.
func TestSimulate(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	for n := range 3000 {
		s := randomSchedule(rng, 30)
		if s.Kind == costmodel.OneFOneB && n%2 == 0 { // fewer micro-batches than stages
			s.MicroBatches = 1 + rng.Int64N(s.Stages)
		}
		p := randomPipe(rng, s)
		got, want := p.ends(), p.inOrder()
		if s.Kind == costmodel.Interleaved && s.MicroBatches < s.Stages { // inputs are waited for, and neighbours
			for rank := range got {
				if got[rank] < want[rank] {
					t.Fatalf("%+v: %v, but without waits for neighbours %v", p, got, want)
				}
			}
			continue
		}
		if s.Kind == costmodel.Interleaved {
			want = p.lockStepInFull()
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v: %v, want %v", p, got, want)
		}
	}
}

// TestSimulateBubble: if all chunks take the same time, a rank waits for (p − 1) / (v·m + p − 1) of
// the step (Narayanan et al., SC 2021, §2.2). In an interleaved schedule neighbours wait for each
// other, so it is no less.
func TestSimulateBubble(t *testing.T) {
	for _, s := range []costmodel.Schedule{
		{Kind: costmodel.GPipe, Stages: 3, Chunks: 1, MicroBatches: 5},
		{Kind: costmodel.OneFOneB, Stages: 4, Chunks: 1, MicroBatches: 8},
		{Kind: costmodel.Interleaved, Stages: 4, Chunks: 2, MicroBatches: 8},
	} {
		p := &pipe{Schedule: s, train: true}
		for i := range s.Stages * s.Chunks {
			p.stages = append(p.stages, Stage{Rank: int(i % s.Stages), Forward: 1, Backward: 2})
		}
		step, work := slices.Max(p.ends()), float64(3*s.Chunks*s.MicroBatches)
		ranks := float64(s.Stages)
		if got, want := (step-work)/step, (ranks-1)/(float64(s.Chunks*s.MicroBatches)+ranks-1); got < want-1e-12 || s.Chunks == 1 && got > want+1e-12 || got > 0.3 {
			t.Errorf("%+v: a bubble of %v, want %v", s, got, want)
		}
	}
}

// TestSimulateMissing: with fewer stages than the ranks have chunks, the existing ones run.
func TestSimulateMissing(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 500 {
		s := randomSchedule(rng, 30)
		if s.Kind != costmodel.Interleaved || s.MicroBatches < s.Stages {
			continue
		}
		p := randomPipe(rng, s)
		p.stages = p.stages[:int(s.Stages)+rng.IntN(len(p.stages)-int(s.Stages)+1)]
		if got, want := p.ends(), p.lockStepInFull(); !slices.Equal(got, want) {
			t.Fatalf("%+v: %v, want %v", p, got, want)
		}
	}
}

// TestSimulateNoLink: without a link no message arrives; an unknown order never ends.
func TestSimulateNoLink(t *testing.T) {
	s := costmodel.Schedule{Kind: costmodel.OneFOneB, Stages: 2, Chunks: 1, MicroBatches: 2}
	stages := []Stage{{Forward: 1, Backward: 1}, {Rank: 1, Forward: 1, Backward: 1}}
	if got := (&pipe{s, true, stages}).ends(); !slices.Equal(got, []float64{6, 5}) {
		t.Errorf("%v, want 6 and 5 s", got)
	}
	unknown := s
	unknown.Kind = "zb-v"
	apart := slices.Clone(stages)
	apart[0].From = math.Inf(1)
	for _, p := range []*pipe{{s, true, apart}, {unknown, true, stages}} {
		if got := p.ends(); !math.IsInf(got[0], 1) || !math.IsInf(got[1], 1) {
			t.Errorf("%+v: %v", p, got)
		}
	}
}

// TestManyMicroBatches: by powers, steps too long to simulate end as the steady state says: from some
// number on, so many more take so much longer. Sums of whole numbers do not round, so figures are equal.
func TestManyMicroBatches(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 9))
	for range 300 {
		s := randomSchedule(rng, 30)
		s.MicroBatches = 1_000_000 / s.Stages * s.Stages
		p := randomPipe(rng, s)
		const period = 60 * 7 * 8 // all numbers of stages and chunks, and what they make of each other
		at := func(batches int64) []float64 {
			more := *p
			more.MicroBatches = batches
			return more.ends()
		}
		a, b, far := at(s.MicroBatches), at(s.MicroBatches+period*s.Stages), at(s.MicroBatches+1000*period*s.Stages)
		for rank := range a {
			if want := a[rank] + 1000*(b[rank]-a[rank]); far[rank] != want || b[rank] < a[rank] {
				t.Fatalf("%+v, rank %d: %v, want %v", p, rank, far[rank], want)
			}
		}
	}
}

// TestRepeat: the power of a step is the step so many times over.
func TestRepeat(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 9))
	for range 200 {
		ranks := 1 + rng.IntN(3)
		order := 2 * ranks
		add := make([]float64, order*order)
		for i := range add {
			if add[i] = float64(rng.IntN(50)); rng.IntN(2) == 0 {
				add[i] = math.Inf(-1)
			}
		}
		step := func(clocks []deviceClock) {
			before := slices.Clone(clocks)
			for i := range order {
				for j := range order {
					*entry(clocks, i) = max(*entry(clocks, i), *entry(before, j)+add[i*order+j])
				}
			}
		}
		n := rng.Int64N(2000)
		want, got := make([]deviceClock, ranks), make([]deviceClock, ranks)
		for range n {
			step(want)
		}
		repeat(got, n, maxAdditions, step)
		if !slices.Equal(got, want) {
			t.Fatalf("%d times: %v, want %v", n, got, want)
		}
	}
}
