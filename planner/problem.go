package planner

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// Problem is a model to place, its costs, the devices that it can use, and the
// objective of the answer.
type Problem struct {
	// Graph is the model, and Workload what is run of it: what that leaves open,
	// [Problem.Resolved] fills in.
	Graph    *modelgraph.Graph
	Workload costmodel.Workload
	// Diffusion is planned in their place where it is not nil.
	Diffusion *Diffusion
	// Costs says what each unit costs, under a workload of its own. Nil: the
	// cost model's table of Workload.
	Costs *costmodel.Table
	// Topology has the devices. One with a name and no capacity is the
	// catalogue's GPU of that name.
	Topology *costmodel.Topology
	// Pins fix units to devices.
	Pins []devicemap.Pin
	// Together lists patterns whose units must share a device. As each device
	// takes one stretch of the chain, the units between them go along.
	Together [][]string
	// Unconstrained: any unit may be on any device, whatever the order (device
	// maps only). Then a together-group takes no units between along.
	Unconstrained bool
	// Offload is the tier that units may leave the devices for where not all
	// fit: as few bytes as can be then travel in a forward. Empty: none.
	Offload Tier
	// Objective is what is minimised; empty: [Memory].
	Objective Objective
}

// Objective is what is minimised: [Memory], [Time] or [Latency].
type Objective string

// The objectives.
const (
	// Memory is the largest share of a budget, then the sum of squared shares.
	Memory Objective = "memory"
	// Time is the predicted time of a step, in seconds, among maps that fit;
	// then the largest share, the bytes that cross, and the number of cuts.
	Time Objective = "time"
	// Latency is the predicted time of one request, in seconds, among maps that
	// fit: of one micro-batch that has the devices to itself, prompt and
	// generated tokens, while memory is that of the whole workload. Inference
	// alone has one.
	Latency Objective = "latency"
)

// Tier is where units go that leave the devices: [CPU] or [Disk].
type Tier string

// The tiers. Under Disk, what the host's memory holds stays in it, where the
// topology says how much that is.
const (
	CPU  Tier = "cpu"
	Disk Tier = "disk"
)

// Settings are the limits of a Solve; the zero value works.
type Settings struct {
	// TimeLimit ends the search; 0 means 10 s. The best map so far is
	// returned with its bound.
	TimeLimit time.Duration
	// Probes ends the search after so many probes of a target; 0: no limit.
	Probes int
	// FitsOnly: if nothing fits, what is closest does not matter. Best of the
	// [*InfeasibleError] may be nil.
	FitsOnly bool
	// Progress, if not nil, receives how far the search is.
	Progress func(Progress)

	below float64 // a share from which on a solution is of no use; 0: none is
}

// Progress is where the search for the largest share stands: after Probes of a
// target, with the Best share so far and the Lower bound of it (numbers by their
// Float method); then Done of Total devices, while a more even map is sought.
type Progress = chain.Progress

// DefaultTimeLimit is used where Settings give none.
const DefaultTimeLimit = 10 * time.Second

// Resolved is the problem with the catalogue's GPUs in the place of their names
// and, where it has no Costs, the cost model's table of its workload on these
// GPUs. Faults are those of [catalogue.Named], [estimate.Resolve] and
// [estimate.Table].
func (problem Problem) Resolved() (Problem, error) {
	if problem.Graph == nil && problem.Diffusion == nil || problem.Topology == nil {
		return problem, errors.New("planner: a plan needs a graph and a topology")
	}
	workload := problem.Workload
	if problem.Costs != nil {
		workload = problem.Costs.Workload
	}
	workload.Mode = cmp.Or(workload.Mode, costmodel.Infer)
	if problem.Costs == nil && workload.Strategy == costmodel.Auto {
		return problem, costmodel.Refuse(costmodel.Set("strategy", workload.Strategy), "a plan has one strategy; strategy.Rows of package planner/strategy compares all")
	}
	var err error
	if problem.Topology, err = catalogue.Named(problem.Topology, workload.Mode); err != nil || problem.Costs != nil || problem.Diffusion != nil {
		return problem, err
	}
	if workload, err = estimate.Resolve(problem.Graph, estimate.On(problem.Graph, workload, problem.Topology)); err != nil {
		return problem, err
	}
	if problem.Costs, err = estimate.Table(problem.Graph, workload); err != nil {
		return problem, fmt.Errorf("counting %q: %w", problem.Graph.Name, err)
	}
	return problem, nil
}

// unitsAlone are costs without those of parts, for methods that add up units one by one.
func unitsAlone(problem *Problem) *costmodel.Table {
	if problem.Costs.Part == nil || !problem.Unconstrained && problem.Objective != Time && problem.Offload == "" {
		return problem.Costs
	}
	alone := *problem.Costs
	alone.Part = nil
	return &alone
}

// resolve checks a resolved problem and resolves its constraints, once for all
// methods.
func (problem *Problem) resolve() (*instance.Instance, error) {
	if len(problem.Costs.Units) != len(problem.Graph.Units) {
		return nil, fmt.Errorf("planner: the table has %d units and the graph %d", len(problem.Costs.Units), len(problem.Graph.Units))
	}
	if err := instance.CheckCosts(problem.Costs); err != nil {
		return nil, err
	}
	if err := problem.Topology.Check(); err != nil {
		return nil, err
	}
	if err := problem.checkRuns(); err != nil {
		return nil, err
	}
	problem.Costs = unitsAlone(problem)
	base := instance.Instance{Graph: problem.Graph, Setup: instance.Setup{Costs: problem.Costs, Topology: problem.Topology}, Objective: instance.Objective(cmp.Or(problem.Objective, Memory)), AnyAssignment: problem.Unconstrained, Offload: instance.Tier(problem.Offload)}
	if problem.Objective == Latency {
		if mode := problem.Costs.Workload.Mode; mode != costmodel.Infer {
			return nil, costmodel.Refuse(costmodel.Set("mode", mode), "a request is of inference: %v has no latency of one", costmodel.Set("mode", mode))
		}
		base.Objective, base.Request = instance.Time, true
	}
	switch base.Objective {
	case instance.Time:
		if err := base.CheckTimes(); err != nil {
			return nil, err
		}
	case instance.Memory:
	default:
		return nil, fmt.Errorf("planner: objective %q is unknown", problem.Objective)
	}
	return instance.New(base, problem.Pins, problem.Together)
}

// checkNames refuses names that no engine knows.
func checkNames(workload *costmodel.Workload) error {
	for _, field := range costmodel.Fields() {
		switch value := field.Text(workload); {
		case field.Name != "mode" && field.Name != "strategy" && field.Name != "schedule":
		case value != "" && !slices.Contains(field.Values, value):
			return costmodel.Refuse(costmodel.Set(field.Name, value), "%q is unknown (known: %s)", value, strings.Join(field.Values, ", "))
		}
	}
	return nil
}

// checkRuns refuses a table whose workload no engine runs, as one of the
// caller's own may be, and places asked for where every device runs all.
func (problem *Problem) checkRuns() error {
	workload := &problem.Costs.Workload
	if err := checkNames(workload); err != nil {
		return err
	}
	if costmodel.StageRulesOf(workload.Runtime).Arena && workload.Strategy.Traits().Sequential && (problem.Unconstrained || problem.Offload != "") {
		return costmodel.Refuse(costmodel.Set("runtime", workload.Runtime), "its maps are in the order of the model, with every layer on a GPU: %v and %v are for %v",
			costmodel.Set("contiguous", false), costmodel.Setting{Field: "offload"}, costmodel.Set("runtime", costmodel.DeviceMap.Traits().Runtimes[0]))
	}
	if workload.Liger && workload.Strategy.Traits().Sequential && len(problem.Topology.Devices) > 1 { // Liger-Kernel, issue 593
		return costmodel.Refuse(costmodel.Set("liger", true), "Liger's kernels do not run under a device map on %d GPUs: leave it out, or use %v",
			len(problem.Topology.Devices), costmodel.Set("strategy", costmodel.DDP))
	}
	if workload.Strategy.Traits().Replicated && len(problem.Pins)+len(problem.Together) > 0 {
		return costmodel.Refuse(costmodel.Set("strategy", workload.Strategy), "%v and %v place layers, and under %s every GPU runs them all",
			costmodel.Setting{Field: "pin"}, costmodel.Setting{Field: "together"}, workload.Strategy)
	}
	return nil
}
