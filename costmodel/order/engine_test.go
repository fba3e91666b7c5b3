package order

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// machine runs the actions of all ranks with an engine's waits. An action waits for its message, a
// message for a free slot, and a write for the buffer of the last message. Messages from one rank
// to another leave in the order of their creation.
type machine struct {
	ranks   []int // the rank of each stage
	slots   int
	sent    [2][]int // messages sent into each stage, forward and back
	freed   [2][]int
	made    [2][]int
	waiting map[[2]int][][2]int // by sender and receiver: messages made and not sent, as way and stage
	done    map[[3]int]bool     // by stage, micro-batch, backward
}

func simulated(ranks []int, actions [][]Action, slots int) (left int) {
	m := machine{ranks: ranks, slots: slots, waiting: map[[2]int][][2]int{}, done: map[[3]int]bool{}}
	for way := range 2 {
		m.sent[way], m.freed[way], m.made[way] = make([]int, len(ranks)), make([]int, len(ranks)), make([]int, len(ranks))
	}
	stages := make([][]int, len(actions))
	for stage, rank := range ranks {
		stages[rank] = append(stages[rank], stage)
	}
	actions = slices.Clone(actions)
	for moved := true; moved; {
		moved = false
		for rank := range actions {
			for len(actions[rank]) > 0 && m.run(actions[rank][0], stages[rank][actions[rank][0].Chunk]) {
				actions[rank], moved = actions[rank][1:], true
			}
		}
		moved = m.send() || moved
	}
	for rank := range actions {
		left += len(actions[rank])
	}
	return left
}

// run reports whether the action ran; false if it must wait.
func (m *machine) run(action Action, stage int) bool {
	way, from, to := 0, stage-1, stage+1
	if action.Kind == Backward {
		way, from, to = 1, stage+1, stage-1
	}
	batch := int(action.MicroBatch)
	received := from >= 0 && from < len(m.ranks)
	switch {
	case received && m.sent[way][stage] <= batch:
		return false
	case received && m.freed[way][stage] != batch:
		panic("messages are taken in another order than they are sent in")
	case action.Kind == Backward && !m.done[[3]int{stage, batch, 0}]:
		panic("backward before forward")
	case to >= 0 && to < len(m.ranks) && m.sent[way][to] < m.made[way][to]: // its buffer is not sent yet
		return false
	}
	m.done[[3]int{stage, batch, way}] = true
	m.freed[way][stage]++
	if to >= 0 && to < len(m.ranks) {
		m.made[way][to]++
		between := [2]int{m.ranks[stage], m.ranks[to]}
		m.waiting[between] = append(m.waiting[between], [2]int{way, to})
	}
	return true
}

// send sends the first message of every stream with a free slot.
func (m *machine) send() (moved bool) {
	for between, waiting := range m.waiting {
		if len(waiting) == 0 {
			continue
		}
		way, to := waiting[0][0], waiting[0][1]
		if m.sent[way][to]-m.freed[way][to] < m.slots {
			m.sent[way][to]++
			m.waiting[between], moved = waiting[1:], true
		}
	}
	return moved
}

// TestEngine: all orders of devmap's engine end with the slots of its channels, and run every
// forward and backward once. The most micro-batches in flight in each chunk equal [Depths].
func TestEngine(t *testing.T) {
	t.Parallel()
	for p := range int64(8) {
		for v := range int64(4) {
			for m := int64(1); m <= 32; m++ {
				for _, kind := range []costmodel.ScheduleKind{costmodel.GPipe, costmodel.OneFOneB, costmodel.Interleaved} {
					schedule := costmodel.Schedule{Kind: kind, Stages: p + 1, Chunks: v + 1, MicroBatches: m, AnyMicroBatches: true}
					if kind != costmodel.Interleaved {
						schedule.Chunks = 1
					}
					last := schedule.Stages * schedule.Chunks
					checkEngine(t, schedule, last)
					if schedule.Chunks > 1 && m%5 == 0 { // fewer stages on some ranks
						checkEngine(t, schedule, last-1-m%p1(p))
					}
				}
			}
		}
	}
}

func p1(p int64) int64 { return max(1, p) }

func checkEngine(t *testing.T, schedule costmodel.Schedule, stages int64) {
	t.Helper()
	ranks := make([]int, stages)
	for stage := range ranks {
		ranks[stage] = stage % int(schedule.Stages)
	}
	slots := int(min(2, schedule.MicroBatches))
	for _, train := range []bool{true, false} {
		actions := Engine(schedule, ranks, train)
		all := 0
		for _, list := range actions {
			all += len(list)
		}
		want := stages * schedule.MicroBatches
		if train {
			want *= 2
		}
		if left := simulated(ranks, actions, slots); left > 0 || int64(all) != want {
			t.Errorf("%+v, %d stages, train %t: %d of %d actions wait for each other, want %d", schedule, stages, train, left, all, want)
		}
	}
	for rank := range schedule.Stages {
		phases := Phases(schedule, rank)
		plain := Depths(schedule.Chunks, Phase{Of(schedule, rank), 1, 0})
		if got := Depths(schedule.Chunks, phases...); !slices.Equal(got, plain) {
			t.Errorf("%+v, rank %d: %v in flight, by phases %v", schedule, rank, plain, got)
		}
	}
}

// TestEngineMaps: a device map's stages may be on any rank.
func TestEngineMaps(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 15))
	for range 300 {
		schedule := costmodel.Schedule{MicroBatches: 1 + rng.Int64N(9), AnyMicroBatches: true}
		var ranks []int
		for len(ranks) < 1+rng.IntN(12) {
			rank := rng.IntN(int(schedule.Stages) + 1)
			if len(ranks) > 0 && ranks[len(ranks)-1] == rank {
				continue
			}
			ranks = append(ranks, rank)
			schedule.Stages = max(schedule.Stages, int64(rank)+1)
		}
		for _, train := range []bool{true, false} {
			actions := Engine(schedule, ranks, train)
			if left := simulated(ranks, actions, int(min(2, schedule.MicroBatches))); left > 0 {
				t.Fatalf("%v: %d of %v are left", ranks, left, actions)
			}
			for rank := range actions {
				for chunk, depth := range Depths(int64(len(ranks)), Phase{actions[rank], 1, 0}) {
					if train && depth.Late > 1 {
						t.Fatalf("%v, rank %d, chunk %d: %v in flight", ranks, rank, chunk, depth)
					}
				}
			}
		}
	}
}

// TestEngineTorch: if torch runs rounds of as many micro-batches as stages, or one smaller round,
// the orders equal torch's.
func TestEngineTorch(t *testing.T) {
	same := 0
	for _, kind := range []costmodel.ScheduleKind{costmodel.GPipe, costmodel.OneFOneB, costmodel.Interleaved} {
		for p := int64(1); p <= 6; p++ {
			for m := int64(1); m <= 24; m++ {
				torch := costmodel.Schedule{Kind: kind, Stages: p, Chunks: 1 + m%3, MicroBatches: m}
				if kind != costmodel.Interleaved {
					torch.Chunks = 1
				}
				own := torch
				own.AnyMicroBatches = true
				if torch.Check() != nil || kind == costmodel.Interleaved && m > p && m%p != 0 {
					continue
				}
				same++
				for rank := range p {
					if got, want := Of(own, rank), Of(torch, rank); !slices.Equal(got, want) {
						t.Fatalf("%+v rank %d: %v, want %v", torch, rank, got, want)
					}
				}
			}
		}
	}
	if same < 200 {
		t.Errorf("%d schedules", same)
	}
}
