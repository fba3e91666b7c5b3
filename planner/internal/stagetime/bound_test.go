package stagetime

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// pipeCase is a pipeline of random numbers: the items' seconds on each rank, and the messages'
// seconds at each cut.
type pipeCase struct {
	*cutter
	schedule costmodel.Schedule
	train    bool
	items    int
}

func randomPipe(rng *rand.Rand) *pipeCase {
	stages := 1 + rng.IntN(4)
	p := &pipeCase{items: stages + rng.IntN(4), train: rng.IntN(4) > 0, schedule: costmodel.Schedule{
		Kind: []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe}[rng.IntN(2)], Stages: int64(stages), Chunks: 1, MicroBatches: 1 + rng.Int64N(9),
	}}
	p.schedule.MicroBatches = max(p.schedule.MicroBatches, p.schedule.Stages) // the least that 1F1B runs
	p.cutter = &cutter{pipeCosts: &pipeCosts{}}
	host, slow := rng.IntN(3) == 0, float64(rng.IntN(3)) // whether hosts and links take time
	sums := func(scale float64) []float64 {
		out := make([]float64, p.items+1)
		for i := range p.items {
			out[i+1] = out[i] + scale*float64(rng.IntN(8))
		}
		return out
	}
	for range stages {
		c := p.pipeCosts
		back, issue := 0., 0. // inference has no gradients and no update
		if p.train {
			back = 1
		}
		c.forward, c.update, c.token = append(c.forward, sums(1)), append(c.update, sums(back/2)), append(c.token, sums(0))
		if host {
			issue = 0.7
		}
		c.backward, c.issue, c.issueBack = append(c.backward, sums(2*back)), append(c.issue, sums(issue)), append(c.issueBack, sums(issue*back))
		to, from := make([]float64, p.items+1), make([]float64, p.items+1)
		for i := range p.items {
			to[i], from[i] = slow*float64(rng.IntN(5)), slow*float64(rng.IntN(5))
		}
		p.to, p.from = append(p.to, to), append(p.from, from)
		p.fits = append(p.fits, slices.Repeat([]bool{true}, (p.items+1)*(p.items+1)))
	}
	clear(p.to[stages-1]) // the last stage sends nothing
	clear(p.from[stages-1])
	return p
}

// done is a forward or a backward of a micro-batch.
type done struct {
	batch int64
	back  bool
}

// order returns the actions of a rank: forwards up to the limit in flight, then backwards and
// forwards in turn (torch 2.11, schedules.py, Schedule1F1B._step_microbatches). GPipe has no
// forwards left by then.
func (p *pipeCase) order(rank int64) []done {
	flying := p.schedule.MicroBatches
	if p.schedule.Kind == costmodel.OneFOneB {
		flying = min(flying, p.schedule.Stages-rank)
	}
	var out []done
	for i := range flying {
		out = append(out, done{i, false})
	}
	for i := range p.schedule.MicroBatches {
		if p.train {
			out = append(out, done{i, true})
		}
		if next := flying + i; next < p.schedule.MicroBatches {
			out = append(out, done{next, false})
		}
	}
	return out
}

// simulate returns the end of the last rank's update. It simulates the orders action by action. An
// action begins when its rank is free and its input has arrived. It ends no sooner than the rank's
// host has issued all work up to it.
func (p *pipeCase) simulate(cuts []int) float64 {
	type key struct {
		stage, batch int64
		back         bool
	}
	ends := map[key]float64{}
	last := p.schedule.Stages - 1
	part := func(rows [][]float64, s int64) float64 { return rows[s][cuts[s+1]] - rows[s][cuts[s]] }
	clock, host, at := make([]float64, last+1), make([]float64, last+1), make([]int, last+1)
	for moved := true; moved; {
		moved = false
		for s := range last + 1 {
			order := p.order(s)
			for ; at[s] < len(order); at[s]++ {
				a := order[at[s]]
				ready, ok := 0., true
				switch b := a.batch; {
				case a.back && s == last:
					ready, ok = ends[key{s, b, false}], true
				case a.back:
					ready, ok = ends[key{s + 1, b, true}]
					ready += p.from[s][cuts[s+1]]
				case s > 0:
					ready, ok = ends[key{s - 1, b, false}]
					ready += p.to[s-1][cuts[s]]
				}
				if !ok {
					break
				}
				issue, length := part(p.issue, s), part(p.forward, s)
				if a.back {
					issue, length = part(p.issueBack, s), part(p.backward, s)
				}
				host[s] += issue
				clock[s] = max(max(clock[s], ready)+length, host[s])
				ends[key{s, a.batch, a.back}] = clock[s]
				moved = true
			}
		}
	}
	end := 0.
	for s := range last + 1 {
		end = max(end, clock[s]+part(p.update, s))
	}
	return end
}

// eachCuts calls f with all possible cuts; the slice is valid until f returns.
func (p *pipeCase) eachCuts(f func(cuts []int)) {
	cuts := make([]int, p.schedule.Stages+1)
	cuts[p.schedule.Stages] = p.items
	var put func(s int)
	put = func(s int) {
		if s == int(p.schedule.Stages) {
			f(cuts)
			return
		}
		for cuts[s] = cuts[s-1] + 1; cuts[s] <= p.items-(int(p.schedule.Stages)-s); cuts[s]++ {
			put(s + 1)
		}
	}
	put(1)
}

// TestPipeBound compares every bound on a step with the simulated schedule. The bound of every
// prefix of all cuts is for any later stages, and the root's bound is compared with the best cuts.
func TestPipeBound(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(51, 52))
	bounds, met := 0, 0
	for i := range 4000 {
		p := randomPipe(rng)
		s := &pipeSearch{cutter: p.cutter, pipeBound: newPipeBound(&stretchWatch{ctx: t.Context()}, p.schedule, p.train, p.cutter, p.items)}
		best := math.Inf(1)
		p.eachCuts(func(cuts []int) {
			step := p.simulate(cuts)
			best = min(best, step)
			prefix := prefix{}
			for stage := range cuts {
				if got := s.below(prefix, stage, cuts[stage]); got > step*(1+1e-12) {
					t.Fatalf("%d: %+v, train %t, cuts %v: with %d stages cut the bound is %v, the step takes %v", i, p.schedule, p.train, cuts, stage, got, step)
				}
				bounds++
				if stage < len(cuts)-1 {
					prefix = prefix.with(stage, s.stage(p.cutter, stage, cuts[stage], cuts[stage+1]))
				}
			}
		})
		if root := s.root(); root > best*(1+1e-12) {
			t.Fatalf("%d: the root is %v, the best step %v", i, root, best)
		} else if root > 0.9999*best {
			met++
		}
	}
	if bounds < 50_000 || met < 2000 {
		t.Errorf("%d bounds, and the root is the best step in %d of 4000: too few", bounds, met)
	}
}

// TestPipeBoundEven: for equal stages and no messages, both schedules take (m + p − 1)(f + b)
// (Narayanan et al., SC 2021, §2.2). The bound before the first cut is as large.
func TestPipeBoundEven(t *testing.T) {
	for _, kind := range []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe} {
		for _, m := range []int64{4, 5, 8, 11} {
			t.Run(fmt.Sprint(kind, m), func(t *testing.T) {
				const stages, f, b = 4, 1, 2
				p := &pipeCase{items: stages, train: true, schedule: costmodel.Schedule{Kind: kind, Stages: stages, Chunks: 1, MicroBatches: m}}
				p.cutter = &cutter{pipeCosts: &pipeCosts{}}
				zero := make([]float64, stages+1)
				for range stages {
					c := p.pipeCosts
					c.forward, c.backward = append(c.forward, []float64{0, f, 2 * f, 3 * f, 4 * f}), append(c.backward, []float64{0, b, 2 * b, 3 * b, 4 * b})
					c.update, c.token, c.issue, c.issueBack = append(c.update, zero), append(c.token, zero), append(c.issue, zero), append(c.issueBack, zero)
					p.to, p.from, p.fits = append(p.to, zero), append(p.from, zero), append(p.fits, slices.Repeat([]bool{true}, (stages+1)*(stages+1)))
				}
				want := float64(m+stages-1) * (f + b)
				root := (&pipeSearch{cutter: p.cutter, pipeBound: newPipeBound(&stretchWatch{ctx: t.Context()}, p.schedule, true, p.cutter, stages)}).root()
				if step := p.simulate([]int{0, 1, 2, 3, 4}); step != want || root != want {
					t.Errorf("played %v, bound %v, want %v", step, root, want)
				}
			})
		}
	}
}
