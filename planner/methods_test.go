package planner_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/exhaustive"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// forms lists kinds of problems for all methods. They are small enough for exhaustive search.
var forms = []struct {
	name    string
	samples int
	sample  func(*testing.T, *rand.Rand) planner.Problem
	memory  bool // only under [planner.Memory]
	// best returns the least value of all allowed maps (under [planner.Time], that fit); false if
	// there are none.
	best func(*planner.Problem) (float64, bool)
}{
	{"chain", 60, randomproblem.Timed, false, bestInOrder},
	{"anywhere", 60, func(t *testing.T, rng *rand.Rand) planner.Problem {
		t.Helper()
		for {
			problem := randomproblem.Timed(t, rng)
			problem.Unconstrained = true
			if math.Pow(float64(len(problem.Topology.Devices)), float64(len(problem.Graph.Units))) < 1000 {
				return problem
			}
		}
	}, false, bestUnconstrained},
	{"pipeline", 50, func(t *testing.T, rng *rand.Rand) planner.Problem {
		t.Helper()
		problem := fixtures.Must(randomproblem.Pipeline(rng))(t)
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
		problem := fixtures.Must(randomproblem.Pipeline(rng))(t)
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

// TestMethods checks all methods. Exactly one method serves each problem. Its answers pass the
// certificate and respect the problem's constraints, with all the time and with none. No value is
// below the best of all maps, and no bound above it. An answer called optimal is.
func TestMethods(t *testing.T) {
	served := map[string]int{}
	for _, form := range forms {
		for _, objective := range []planner.Objective{planner.Memory, planner.Time} {
			if form.memory && objective != planner.Memory {
				continue
			}
			t.Run(form.name+"/"+string(objective), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(91, 92))
				for sample := range randomproblem.Samples(form.samples) {
					problem := form.sample(t, rng)
					problem.Objective = objective
					best, some := form.best(&problem)
					found := holder{t: t, in: randomproblem.Instance(t, &problem), problem: &problem, best: best, some: some, name: fmt.Sprint(form.name, " ", sample)}
					served[found.method()] += found.hold()
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

// holder compares the one method of a problem with the best of all its maps.
type holder struct {
	t       *testing.T
	name    string
	in      *instance.Instance
	problem *planner.Problem
	best    float64
	some    bool // any map is allowed
	serving instance.Method
}

// method returns the name of the method that serves.
func (found *holder) method() string {
	found.t.Helper()
	for _, method := range planner.Methods {
		if !method.Serves(found.in) {
			continue
		}
		if found.serving != nil {
			found.t.Fatalf("%s: %T and %T serve it", found.name, found.serving, method)
		}
		found.serving = method
	}
	if found.serving == nil || found.serving.Why(found.in) == "" {
		found.t.Fatalf("%s: no method, or none that says why", found.name)
	}
	return fmt.Sprintf("%T", found.serving)
}

// hold runs the method with time and without, and returns the number of answers.
func (found *holder) hold() (answered int) {
	found.t.Helper()
	start, ok := found.start()
	if !ok {
		return 0
	}
	if answer, err := found.serving.Solve(found.t.Context(), found.in, instance.Limits{}, start); found.takes(answer, err) {
		found.certified(answer, true)
		answered++
	}
	ended, cancel := context.WithCancel(found.t.Context())
	cancel()
	if answer, err := found.serving.Solve(ended, found.in, instance.Limits{}, start); err == nil {
		found.certified(answer, false)
	}
	return answered
}

// start returns the first answer of a search for any assignment; false if there is none.
func (found *holder) start() (*instance.Answer, bool) {
	if !found.in.AnyAssignment {
		return nil, true
	}
	first := found.in.InOrder()
	for _, method := range planner.Methods {
		if method.Serves(first) {
			if answer, err := method.Solve(found.t.Context(), first, instance.Limits{}, nil); err == nil {
				return answer, true
			}
		}
	}
	return nil, found.in.Objective == instance.Memory
}

// takes reports an answer. Without an answer, none of the maps may be allowed.
func (found *holder) takes(answer *instance.Answer, err error) bool {
	found.t.Helper()
	var stage *planner.StageError
	var link *instance.LinkError
	var constraint *planner.ConstraintError
	switch {
	case err == nil:
		return true
	case errors.Is(err, instance.ErrNone):
		if answer.Proved && found.some {
			found.t.Fatalf("%s: no map is said to be within the caps, and one has %v", found.name, found.best)
		}
	case errors.As(err, &constraint):
		// For a pipeline with pins, another order of the devices may allow a map.
		if found.some && (!found.in.Piped() || exhaustive.Pipeline(found.problem).Maps > 0) {
			found.t.Fatalf("%s: %v, and a map has %v", found.name, err, found.best)
		}
	case errors.As(err, &stage), errors.As(err, &link): // an engine refuses these
	default:
		found.t.Fatalf("%s: %v", found.name, err)
	}
	return false
}

func (found *holder) certified(answer *instance.Answer, inTime bool) {
	found.t.Helper()
	const rounding = 2e-9
	sol, err := planner.Certify(found.in, answer, found.serving)
	if err != nil {
		found.t.Fatalf("%s: %v", found.name, err)
	}
	if found.in.Objective == instance.Time && sol.LargestShare > 1+rounding {
		found.t.Fatalf("%s: %v has a share of %v", found.name, sol.Map, sol.LargestShare)
	}
	if !keepsAll(found.problem, sol.Map) {
		found.t.Fatalf("%s: %v does not keep %v and %v", found.name, sol.Map, found.problem.Pins, found.problem.Together)
	}
	switch {
	case !found.some:
		found.t.Fatalf("%s: %v, and no map is allowed", found.name, sol.Map)
	case sol.Value < found.best*(1-rounding):
		found.t.Fatalf("%s: %v has %v, and the best of all maps %v", found.name, sol.Map, sol.Value, found.best)
	case sol.LowerBound > found.best*(1+rounding):
		found.t.Fatalf("%s: nothing is below %v (%s), and a map has %v", found.name, sol.LowerBound, sol.Bound, found.best)
	case sol.Status == planner.Optimal && sol.Value > found.best*(1+rounding):
		found.t.Fatalf("%s: %v of %v is called best, and a map has %v", found.name, sol.Map, sol.Value, found.best)
	case sol.Status == planner.LimitReached && inTime && !answer.Stopped:
		found.t.Fatalf("%s: not stopped, and %s", found.name, sol.Status)
	}
}

// keepsAll reports that a map respects the pins, the together-groups, and (except for pipelines and
// replicas) the ties. Patterns are names of units here.
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

// bestInOrder tries all maps in device order; under [planner.Time], in any order if devices differ.
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

func bestUnconstrained(problem *planner.Problem) (float64, bool) {
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

// bestPipeline tries all cuts; under [planner.Time], for all orders of the devices.
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
