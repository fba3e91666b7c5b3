package planner

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/planner/internal/scheduletime"
)

// The two derivations of a bound agree, so that a bound 1 % above is refused. Memory makes some
// bounds longer.
func TestBoundsOfSchedules(t *testing.T) {
	random := rand.New(rand.NewPCG(45, 3))
	places, memory, none, wide := map[string]int{}, 0, 0, 0
	for round := range 600 {
		gpus := 2 + random.IntN(3)
		if round%100 == 0 {
			gpus = 16
		}
		numbers := &scheduletime.Numbers{
			Batches: 1 + random.IntN(20), Line: random.IntN(2) == 0, Loops: random.IntN(3) == 0, Joint: random.IntN(2) == 0,
			Freed: 1 + random.Float64(), Extra: random.Float64(), Update: random.Float64(),
		}
		numbers.Vee = !numbers.Line && !numbers.Loops || random.IntN(3) == 0
		for range 2*gpus + random.IntN(8) {
			work := 1 + 0.2*random.Float64()
			if random.IntN(4) == 0 {
				work = 3 * random.Float64()
			}
			numbers.Work, numbers.Forward, numbers.Input = append(numbers.Work, work), append(numbers.Forward, work/3), append(numbers.Input, work/3)
			saved := 1 + random.Float64()
			numbers.Saved, numbers.Made = append(numbers.Saved, saved), append(numbers.Made, saved-random.Float64()*min(saved, numbers.Freed))
			numbers.Static, numbers.Scratch = append(numbers.Static, 3*random.Float64()), append(numbers.Scratch, random.Float64())
		}
		for range gpus {
			numbers.Free = append(numbers.Free, 8*random.Float64()*float64(len(numbers.Work)))
		}
		bound := numbers.Bound(math.Inf(1))
		if bound > 1e6 { // no length is possible
			none++
			continue
		}
		if gpus == 16 {
			wide++
		}
		free := *numbers
		free.Free = make([]float64, gpus)
		for gpu := range free.Free {
			free.Free[gpu] = math.Inf(1)
		}
		if bound > 1.01*free.Bound(math.Inf(1)) {
			memory++
		}
		places[fmt.Sprintf("line %v, loops %v, V %v", numbers.Line, numbers.Loops, numbers.Vee)]++
		if err := checkNumbers(numbers, bound); err != nil {
			t.Errorf("%+v: %v: %v", numbers, bound, err)
		}
		if err := checkNumbers(numbers, 1.01*bound); !errors.Is(err, errNumbers) {
			t.Errorf("%+v: 1 %% above %v: %v", numbers, bound, err)
		}
	}
	if memory < 50 || none > 400 || len(places) < 6 || wide < 2 {
		t.Errorf("%d bounds are longer for memory, %d have no length, %d are of 16 GPUs; places %v", memory, none, wide, places)
	}
}

// Two GPUs with a forward and a backward of a second each run 4 micro-batches in 10 s if the first has
// memory for two (1F1B). With memory for one, they run one after the other.
func TestBoundsOfTwoGPUs(t *testing.T) {
	for sets, want := range map[float64]float64{1: 16, 2: 10, 4: 10} {
		ones, none := []float64{1, 1}, []float64{0, 0}
		numbers := &scheduletime.Numbers{
			Batches: 4, Line: true, Joint: true, Forward: ones, Input: ones, Work: []float64{2, 2}, Saved: ones, Made: ones, Static: none, Scratch: none,
			Extra: math.Inf(1), Free: []float64{sets, sets},
		}
		if bound := numbers.Bound(want); math.Abs(bound-want) > 1e-3*want || numbers.Bound(math.Inf(1)) > want {
			t.Errorf("memory for %v micro-batches: the bound is %v, and the best order takes %v", sets, bound, want)
		}
	}
}

// Without the step as its limit, a bound is no longer than that step. With one micro-batch the passes
// follow one another, so that the two are close: an update counts only where all GPUs wait for it.
func TestBoundsBelowSteps(t *testing.T) {
	near := 0
	for _, runtime := range []string{torch, costmodel.Devmap} {
		for _, gpus := range []int{2, 4} {
			for _, batches := range []int64{1, 4} {
				bound, step := unlimited(t, gpus, 141<<30, costmodel.Workload{Runtime: runtime, Schedule: costmodel.GPipe, Seq: 8192, Batch: batches, MicroBatches: batches})
				if bound > step {
					t.Errorf("%s, %d GPUs, %d micro-batches: the bound is %v, and a step takes %v", runtime, gpus, batches, bound, step)
				}
				if bound > 0.97*step {
					near++
				}
			}
		}
	}
	if near < 4 {
		t.Errorf("%d bounds are near their steps", near)
	}
}

// With little memory, a bound is longer than with much, and still no longer than a step.
func TestBoundsWithLittleMemory(t *testing.T) {
	workload := costmodel.Workload{Runtime: costmodel.Devmap, Schedule: costmodel.AutoSchedule, Seq: 2048, Batch: 16, MicroBatches: 8}
	free, _ := unlimited(t, 4, 141<<30, workload)
	for _, gib := range []int64{18, 24} {
		bound, step := unlimited(t, 4, gib<<30, workload)
		if bound > step || gib == 18 && bound < 1.05*free {
			t.Errorf("%d GiB: the bound is %v, %v with 141 GiB, and a step takes %v", gib, bound, free, step)
		}
	}
}

// unlimited returns the bound of llama-3.1-8b's training without the step as its limit, and the step.
func unlimited(t *testing.T, gpus int, budget int64, workload costmodel.Workload) (bound, step float64) {
	t.Helper()
	workload.Mode, workload.Precision, workload.Strategy, workload.Recompute, workload.World = costmodel.Train, costmodel.BF16True, costmodel.Pipeline, recomputeAuto, int64(gpus)
	found := fixtures.Must(catalogue.Find("h200-141gb"))(t)
	gpu := found.Device(costmodel.Train)
	gpu.CapacityBytes = budget
	problem := Problem{
		Graph:     fixtures.Must(hf.FromConfig("llama-3.1-8b", fixtures.Must(os.ReadFile("../fixtures/models/llama-3.1-8b/config.json"))(t)))(t),
		Objective: Time, Topology: &costmodel.Topology{Devices: slices.Repeat([]costmodel.Device{gpu}, gpus)}, Workload: workload,
	}
	problem = fixtures.Must(problem.Resolved())(t)
	solution := fixtures.Must(solveSchedule(t.Context(), &problem, problem.Topology, Settings{TimeLimit: time.Minute}))(t)
	question := fixtures.Must(scheduleQuestion(t.Context(), &problem, time.Second))(t)
	return fixtures.Must(question.Numbers())(t).Bound(math.Inf(1)), solution.Value
}
