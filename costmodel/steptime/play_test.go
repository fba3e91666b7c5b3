package steptime

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// The obvious forms: every action of every micro-batch in its turn. They judge
// the forms that take the time and memory of a few.

// orders are the actions of each device in the order of its schedule; a
// device without a stage has none.
func (s *timing) orders(schedule costmodel.Schedule, held [][]int, ranks []int) [][]played {
	w := &s.t.Workload
	out := make([][]played, len(held))
	for rank, d := range ranks {
		for _, a := range schedule.Order(int64(rank)) {
			if a.Chunk < int64(len(held[d])) && (w.Mode == costmodel.Train || !a.Backward) {
				out[d] = append(out[d], played{held[d][a.Chunk], int(a.MicroBatch), a.Backward})
			}
		}
	}
	return out
}

// played is one forward or backward of a micro-batch on a stage.
type played struct {
	stage, batch int
	backward     bool
}

// play runs every device's actions in order and is when each device ends.
// Hosts do not wait for what a stage receives: streams do.
func (s *timing) play(stages []stage, orders [][]played) []float64 {
	done := map[played]float64{}
	end, host := make([]float64, len(orders)), make([]float64, len(orders))
	at := make([]int, len(orders))
	for moved := true; moved; {
		moved = false
		for d := range orders {
			for at[d] < len(orders[d]) {
				a := orders[d][at[d]]
				ready, ok := s.ready(stages, done, a)
				if !ok {
					break
				}
				issue, length := stages[a.stage].takes(a.backward)
				host[d] += issue
				end[d] = max(max(end[d], ready)+length, host[d])
				done[a] = end[d]
				at[d]++
				moved = true
			}
		}
	}
	return end
}

// ready is when an action's input arrives; false while what makes it has not
// run.
func (s *timing) ready(stages []stage, done map[played]float64, a played) (float64, bool) {
	from := played{a.stage - 1, a.batch, false}
	var output int64
	switch {
	case a.backward && a.stage == len(stages)-1:
		from = played{a.stage, a.batch, false}
	case a.backward:
		from = played{a.stage + 1, a.batch, true}
		output = stages[a.stage].output
	case a.stage == 0:
		return 0, true
	default:
		output = stages[a.stage-1].output
	}
	t, ok := done[from]
	return t + s.topo.SendSeconds(stages[from.stage].device, stages[a.stage].device, output), ok
}

// lockStepInFull is when each device ends an interleaved schedule. Its ranks go
// through one table of time steps: after a step a rank sends and receives in
// one batch whatever it and its neighbours made in that step, and goes on when
// the batch is through, so that a forward beside a backward waits for it
// (torch 2.11, distributed/pipelining/schedules.py,
// PipelineScheduleMulti._step_microbatches).
func (s *timing) lockStepInFull(stages []stage, schedule costmodel.Schedule, held [][]int, ranks []int) []float64 {
	steps := make([][]*played, len(held))
	longest := 0
	for rank, d := range ranks {
		steps[d] = s.steps(schedule, held[d], int64(rank))
		longest = max(longest, len(steps[d]))
	}
	end, host := make([]float64, len(held)), make([]float64, len(held))
	for t := range longest {
		for _, d := range ranks {
			if t < len(steps[d]) && steps[d][t] != nil {
				a := steps[d][t]
				issue, length := stages[a.stage].takes(a.backward)
				host[d] += issue
				end[d] = max(end[d]+length, host[d])
			}
		}
		end = s.exchange(stages, steps, t, end)
	}
	return end
}

// exchange is when each device has sent and received what was made in step t.
func (s *timing) exchange(stages []stage, steps [][]*played, t int, made []float64) []float64 {
	through := append([]float64(nil), made...)
	for d := range steps {
		if t >= len(steps[d]) || steps[d][t] == nil {
			continue
		}
		a := steps[d][t]
		to, output := a.stage+1, stages[a.stage].output
		if a.backward {
			if to = a.stage - 1; to >= 0 {
				output = stages[to].output
			}
		}
		if to < 0 || to >= len(stages) || stages[to].device == d {
			continue
		}
		peer := stages[to].device
		done := max(made[d], made[peer]) + s.topo.SendSeconds(d, peer, output)
		through[d], through[peer] = max(through[d], done), max(through[peer], done)
	}
	return through
}

// steps is a rank's column of the table, nil where it has nothing to do.
func (s *timing) steps(schedule costmodel.Schedule, held []int, rank int64) []*played {
	column := schedule.Column(rank)
	out := make([]*played, column.Length())
	for step := range out {
		a, ok := column.At(int64(step))
		if ok && a.Chunk < int64(len(held)) && (s.t.Workload.Mode == costmodel.Train || !a.Backward) {
			out[step] = &played{held[a.Chunk], int(a.MicroBatch), a.Backward}
		}
	}
	return out
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

// randomTiming is a pipeline of stages that take random times, one or several a
// device.
func randomTiming(rng *rand.Rand, s costmodel.Schedule) (*timing, []stage, [][]int, []int) {
	t := &timing{t: &costmodel.Table{Workload: costmodel.Workload{Mode: []costmodel.Mode{costmodel.Train, costmodel.Train, costmodel.Infer}[rng.IntN(3)], Schedule: s.Kind, MicroBatches: s.MicroBatches}}, topo: &costmodel.Topology{}}
	var stages []stage
	held, ranks := make([][]int, s.Stages+1), []int{}
	of := rng.Perm(int(s.Stages) + 1)
	for rank := range s.Stages {
		ranks = append(ranks, of[rank])
	}
	for i := range s.Stages * s.Chunks {
		d := of[i%s.Stages]
		held[d] = append(held[d], len(stages))
		whole := func(top int) float64 { return float64(rng.IntN(top)) } // sums of whole numbers do not round
		stages = append(stages, stage{device: d, forward: 1 + whole(9), backward: whole(20), issue: whole(12), issueBack: whole(4), output: rng.Int64N(9)})
	}
	for range s.Stages + 1 {
		t.topo.Devices = append(t.topo.Devices, costmodel.Device{Rates: costmodel.Rates{LinkBytesPerSecond: 1}})
	}
	return t, stages, held, ranks
}

func (s *timing) endsOf(schedule costmodel.Schedule, stages []stage, held [][]int, ranks []int) []float64 {
	if schedule.Kind == costmodel.Interleaved {
		return s.lockStep(stages, schedule, held, ranks)
	}
	end := make([]float64, len(held))
	for rank, t := range s.stageSeconds(stages).Ends(schedule.Kind, s.t.Workload.Mode == costmodel.Train, schedule.MicroBatches) {
		end[ranks[rank]] = t
	}
	return end
}

// TestEnds: by waves and by columns every device ends when it does action by
// action.
func TestEnds(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	for n := range 3000 {
		s := randomSchedule(rng, 30)
		if s.Kind == costmodel.OneFOneB && n%2 == 0 { // fewer micro-batches than stages
			s.MicroBatches = 1 + rng.Int64N(s.Stages)
		}
		x, stages, held, ranks := randomTiming(rng, s)
		want := x.play(stages, x.orders(s, held, ranks))
		got := x.endsOf(s, stages, held, ranks)
		if s.Kind == costmodel.Interleaved && s.MicroBatches < s.Stages { // inputs are waited for, and neighbours
			for d := range got {
				if got[d] < want[d] {
					t.Fatalf("%+v, %s, %+v: %v, but without waits for neighbours %v", s, x.t.Workload.Mode, stages, got, want)
				}
			}
			continue
		}
		if s.Kind == costmodel.Interleaved {
			want = x.lockStepInFull(stages, s, held, ranks)
		}
		if !equalFloats(got, want) {
			t.Fatalf("%+v, %s, %+v: %v, want %v", s, x.t.Workload.Mode, stages, got, want)
		}
	}
}

func equalFloats(a, b []float64) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// TestManyMicroBatches: by powers, so many as no play could run end when the
// steady state says: from some number on, so many more take so much longer.
// Sums of whole numbers do not round, so that figures are equal.
func TestManyMicroBatches(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 9))
	for range 300 {
		s := randomSchedule(rng, 30)
		s.MicroBatches = 1_000_000 / s.Stages * s.Stages
		x, stages, held, ranks := randomTiming(rng, s)
		const period = 60 * 7 * 8 // all numbers of stages and chunks, and what they make of each other
		at := func(m int64) []float64 {
			q := s
			q.MicroBatches = m
			return x.endsOf(q, stages, held, ranks)
		}
		a, b, far := at(s.MicroBatches), at(s.MicroBatches+period*s.Stages), at(s.MicroBatches+1000*period*s.Stages)
		for d := range a {
			if want := a[d] + 1000*(b[d]-a[d]); far[d] != want || b[d] < a[d] {
				t.Fatalf("%+v, %s, device %d: %v, want %v", s, x.t.Workload.Mode, d, far[d], want)
			}
		}
	}
}

// TestAgain: the power of a step is the step so many times over.
func TestAgain(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 9))
	for range 200 {
		size := 1 + rng.IntN(6)
		add := make([]float64, size*size)
		for i := range add {
			if add[i] = float64(rng.IntN(50)); rng.IntN(2) == 0 {
				add[i] = math.Inf(-1)
			}
		}
		step := func(clocks []float64) {
			before := append([]float64(nil), clocks...)
			for i := range clocks {
				for j := range before {
					clocks[i] = max(clocks[i], before[j]+add[i*size+j])
				}
			}
		}
		n := rng.Int64N(2000)
		want, got := make([]float64, size), make([]float64, size)
		for range n {
			step(want)
		}
		again(got, n, fewTimes, step)
		if !equalFloats(got, want) {
			t.Fatalf("%d times: %v, want %v", n, got, want)
		}
	}
}
