package planner_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/exhaustive"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// forms are the problems that every method is held to, as long as it serves
// them: so small that brute force says what the best map has.
var forms = []struct {
	name   string
	draws  int
	draw   func(*testing.T, *rand.Rand) planner.Problem
	memory bool // and not time
	// best is the least value of all maps that are allowed, and under
	// [planner.Time] fit; false where there are none.
	best func(*planner.Problem) (float64, bool)
}{
	{"chain", 60, randomproblem.Timed, false, bestInOrder},
	{"anywhere", 60, func(t *testing.T, rng *rand.Rand) planner.Problem {
		t.Helper()
		for {
			problem := randomproblem.Timed(t, rng)
			problem.Anywhere = true
			if math.Pow(float64(len(problem.Topology.Devices)), float64(len(problem.Graph.Units))) < 1000 {
				return problem
			}
		}
	}, false, bestAnywhere},
	{"pipeline", 50, func(t *testing.T, rng *rand.Rand) planner.Problem {
		t.Helper()
		problem, err := randomproblem.Pipeline(rng)
		if err != nil {
			t.Fatal(err)
		}
		return problem
	}, false, bestPipeline},
	{"chain in arenas", 100, func(t *testing.T, rng *rand.Rand) planner.Problem {
		t.Helper()
		problem := randomproblem.Timed(t, rng)
		randomproblem.Arenas(rng, &problem)
		return problem
	}, false, bestInOrder},
	{"pipeline in arenas", 80, func(t *testing.T, rng *rand.Rand) planner.Problem {
		t.Helper()
		problem, err := randomproblem.Pipeline(rng)
		if err != nil {
			t.Fatal(err)
		}
		randomproblem.Arenas(rng, &problem)
		return problem
	}, false, bestPipeline},
	{"replicas", 20, func(t *testing.T, rng *rand.Rand) planner.Problem {
		t.Helper()
		problem := randomproblem.OnH200(t, "llama-3.2-1b", costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.DDP, World: 2, Batch: 1 + rng.Int64N(8)}, 2)
		problem.Topology.Devices[1].CapacityBytes -= rng.Int64N(120 << 30)
		return problem
	}, false, bestReplicas},
}

// TestMethods holds every method to the same words: each problem has one method
// that serves it; its answers pass the certificate, keep what the problem asks
// for, are never below the best of all maps, and their bounds never above it,
// in full time and with none; what it calls best is.
func TestMethods(t *testing.T) {
	served := map[string]int{}
	for _, form := range forms {
		for _, objective := range []planner.Objective{planner.Memory, planner.Time} {
			if form.memory && objective != planner.Memory {
				continue
			}
			t.Run(form.name+"/"+string(objective), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(91, 92))
				for draw := range randomproblem.Samples(form.draws) {
					problem := form.draw(t, rng)
					problem.Objective = objective
					best, some := form.best(&problem)
					held := holder{t: t, in: randomproblem.Instance(t, &problem), problem: &problem, best: best, some: some, name: fmt.Sprint(form.name, " ", draw)}
					served[held.method()] += held.hold()
				}
			})
		}
	}
	if len(served) != len(planner.Methods) {
		t.Errorf("%d of %d methods served: %v", len(served), len(planner.Methods), served)
	}
	for method, answers := range served {
		if answers < 20 {
			t.Errorf("%s gave %d answers: the draw is one-sided", method, answers)
		}
	}
}

// holder holds the one method of a problem to the best of all its maps.
type holder struct {
	t       *testing.T
	name    string
	in      *instance.Instance
	problem *planner.Problem
	best    float64
	some    bool // there are any
	serving instance.Method
}

// method is the name of the one that serves.
func (held *holder) method() string {
	held.t.Helper()
	for _, method := range planner.Methods {
		if !method.Serves(held.in) {
			continue
		}
		if held.serving != nil {
			held.t.Fatalf("%s: %T and %T serve it", held.name, held.serving, method)
		}
		held.serving = method
	}
	if held.serving == nil || held.serving.Why(held.in) == "" {
		held.t.Fatalf("%s: no method, or none that says why", held.name)
	}
	return fmt.Sprintf("%T", held.serving)
}

// hold asks the method with time and without; 1 where it had an answer.
func (held *holder) hold() (answered int) {
	held.t.Helper()
	start, ok := held.start()
	if !ok {
		return 0
	}
	if answer, err := held.serving.Solve(held.t.Context(), held.in, instance.Limits{}, start); held.takes(answer, err) {
		held.certified(answer, true)
		answered++
	}
	ended, cancel := context.WithCancel(held.t.Context())
	cancel()
	if answer, err := held.serving.Solve(ended, held.in, instance.Limits{}, start); err == nil {
		held.certified(answer, false)
	}
	return answered
}

// start is what a search of any assignment begins with; false where it has
// nothing to begin with.
func (held *holder) start() (*instance.Answer, bool) {
	if !held.in.AnyAssignment {
		return nil, true
	}
	first := held.in.InOrder()
	for _, method := range planner.Methods {
		if method.Serves(first) {
			if answer, err := method.Solve(held.t.Context(), first, instance.Limits{}, nil); err == nil {
				return answer, true
			}
		}
	}
	return nil, held.in.Objective == instance.Memory
}

// takes reports an answer; where there is none, none of the maps must be good.
func (held *holder) takes(answer *instance.Answer, err error) bool {
	held.t.Helper()
	var stage *planner.StageError
	var link *instance.LinkError
	var constraint *planner.ConstraintError
	switch {
	case err == nil:
		return true
	case errors.Is(err, instance.ErrNone):
		if answer.Proved && held.some {
			held.t.Fatalf("%s: no map is said to be within the caps, and one has %v", held.name, held.best)
		}
	case errors.As(err, &constraint):
		// Of a pipeline's pins some order of the devices may keep what theirs cannot.
		if held.some && (!held.in.Piped() || exhaustive.Pipeline(held.problem).Maps > 0) {
			held.t.Fatalf("%s: %v, and a map has %v", held.name, err, held.best)
		}
	case errors.As(err, &stage), errors.As(err, &link): // what an engine refuses
	default:
		held.t.Fatalf("%s: %v", held.name, err)
	}
	return false
}

func (held *holder) certified(answer *instance.Answer, inTime bool) {
	held.t.Helper()
	const rounding = 2e-9
	sol, err := planner.Certify(held.in, answer, held.serving)
	if err != nil {
		held.t.Fatalf("%s: %v", held.name, err)
	}
	if held.in.Objective == instance.Time && sol.LargestShare > 1+rounding {
		held.t.Fatalf("%s: %v has a share of %v", held.name, sol.Map, sol.LargestShare)
	}
	if !keepsAll(held.problem, sol.Map) {
		held.t.Fatalf("%s: %v does not keep %v and %v", held.name, sol.Map, held.problem.Pins, held.problem.Together)
	}
	switch {
	case !held.some:
		held.t.Fatalf("%s: %v, and no map is allowed", held.name, sol.Map)
	case sol.Value < held.best*(1-rounding):
		held.t.Fatalf("%s: %v has %v, and the best of all maps %v", held.name, sol.Map, sol.Value, held.best)
	case sol.LowerBound > held.best*(1+rounding):
		held.t.Fatalf("%s: nothing is below %v (%s), and a map has %v", held.name, sol.LowerBound, sol.Bound, held.best)
	case sol.Status == planner.Optimal && sol.Value > held.best*(1+rounding):
		held.t.Fatalf("%s: %v of %v is called best, and a map has %v", held.name, sol.Map, sol.Value, held.best)
	case sol.Status == planner.LimitReached && inTime && !answer.Stopped:
		held.t.Fatalf("%s: not stopped, and %s", held.name, sol.Status)
	}
}

// keepsAll reports that a map keeps the pins, the together-groups, and but for
// pipelines and replicas the ties. Patterns are names of units here.
func keepsAll(problem *planner.Problem, placed devicemap.Map) bool {
	at := map[string]devicemap.Device{}
	for unit, device := range placed {
		at[problem.Graph.Units[unit].Name] = device
	}
	for _, pin := range problem.Pins {
		if int(at[pin.Pattern]) != pin.Device {
			return false
		}
	}
	for _, set := range problem.Together {
		for _, name := range set {
			if at[name] != at[set[0]] {
				return false
			}
		}
	}
	if problem.Costs.Workload.Strategy.Traits().Staged || placed == nil {
		return true
	}
	for _, tied := range problem.Graph.TiedUnits() {
		for _, unit := range tied {
			if placed[unit] != placed[tied[0]] {
				return false
			}
		}
	}
	return true
}

// bestInOrder tries every map in device order; under [planner.Time] of devices
// that differ in any order.
func bestInOrder(problem *planner.Problem) (float64, bool) {
	if problem.Objective == planner.Time {
		return shortest(exhaustive.Points(problem, !randomproblem.Uniform(problem.Topology)))
	}
	best := exhaustive.Solve(problem, true)
	if best.Maps > 0 {
		if value, _ := exhaustive.Score(problem, best.Map, false, nil); value < best.Value {
			best = exhaustive.Solve(problem, false) // an idle device's overhead binds
		}
	}
	return best.Value, best.Maps > 0
}

func bestAnywhere(problem *planner.Problem) (float64, bool) {
	if problem.Objective == planner.Time {
		return shortest(exhaustive.Points(problem, true))
	}
	best := exhaustive.Solve(problem, false)
	return best.Value, best.Maps > 0
}

func shortest(points []exhaustive.Point) (float64, bool) {
	least := math.Inf(1)
	for _, point := range points {
		least = min(least, point.Seconds)
	}
	return least, len(points) > 0
}

// bestPipeline tries every way to cut; under [planner.Time] for every order of
// the devices.
func bestPipeline(problem *planner.Problem) (float64, bool) {
	judged := exhaustive.Pipeline(problem)
	if problem.Objective == planner.Time {
		return judged.Seconds, judged.Fit > 0
	}
	return judged.Share, judged.Maps > 0
}

func bestReplicas(problem *planner.Problem) (float64, bool) {
	devices := devicemap.Predict(problem.Costs, problem.Topology, nil)
	largest := 0.
	for _, device := range devices {
		largest = max(largest, device.Share)
	}
	if problem.Objective == planner.Time {
		return *devicemap.StepSeconds(problem.Costs, problem.Topology, nil), largest <= 1
	}
	return largest, true
}
