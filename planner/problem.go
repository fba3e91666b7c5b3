package planner

import (
	"cmp"
	"errors"
	"fmt"
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

// Problem is a model to place, its costs, the available devices and the objective.
type Problem struct {
	// Graph is the model. [Problem.Resolved] fills in defaults of Workload.
	Graph    *modelgraph.Graph
	Workload costmodel.Workload
	// Diffusion, if not nil, replaces Graph and Workload.
	Diffusion *Diffusion
	// Costs has the costs of each unit and its own workload. Nil: the cost model computes a table
	// from Workload.
	Costs *costmodel.Table
	// Topology lists the devices. A device with a name and no capacity is the catalogue's GPU of
	// that name.
	Topology *costmodel.Topology
	// Pins fix units to devices.
	Pins []devicemap.Pin
	// Together lists groups of patterns whose units must share a device. As each device takes one
	// run of the chain, the units between them join them.
	Together [][]string
	// Unconstrained: any unit may be on any device, in any order (device maps only). A
	// together-group then does not include the units between.
	Unconstrained bool
	// Offload is the tier for units that do not fit on the devices. The plan offloads as few bytes
	// per forward as possible. Empty: no offload.
	Offload Tier
	// Objective is the quantity to minimize; empty: [Memory].
	Objective Objective
}

// Objective is the quantity to minimize: [Memory], [Time] or [Latency].
type Objective string

// The objectives.
const (
	// Memory is the largest share of a budget, then the sum of squared shares.
	Memory Objective = "memory"
	// Time is the predicted time of a step in seconds, among maps that fit. Ties go to the smaller
	// largest share, then fewer transferred bytes, then fewer cuts.
	Time Objective = "time"
	// Latency is the predicted time of one request in seconds, among maps that fit. The request is
	// one micro-batch alone on the devices, with its prompt and generated tokens. Memory is that of
	// the whole workload. Only inference has a latency.
	Latency Objective = "latency"
)

// Tier is the memory of offloaded units: [CPU] or [Disk].
type Tier string

// The tiers. With Disk, units still go to host memory first, if the topology gives its size.
const (
	CPU  Tier = "cpu"
	Disk Tier = "disk"
)

// Settings limits a Solve; the zero value works.
type Settings struct {
	// TimeLimit ends the search; 0 means 10 s. [Solve] then returns the best map so far with its
	// bound.
	TimeLimit time.Duration
	// Probes is the most targets that the search tries; 0: no limit.
	Probes int
	// FitsOnly: skip the search for the map closest to fitting. Best of the [*InfeasibleError] may
	// then be nil. Degrees that all stages share are the first that fit.
	FitsOnly bool
	// Progress, if not nil, receives the progress of the search.
	Progress func(Progress)

	below float64 // a share from which on a solution is of no use; 0: none is
	// step is the same for steps. one: this is one of many forms, so that a search of its cuts by
	// trial ends early.
	step float64
	one  bool
}

// Progress is the state of the search for the largest share: the number of Probes, the Best share
// so far and its Lower bound. Best and Lower have a Float method. Then it counts Done of Total
// devices during the search for a more balanced map.
type Progress = chain.Progress

// DefaultTimeLimit applies if Settings.TimeLimit is 0.
const DefaultTimeLimit = 10 * time.Second

// Resolved returns the problem with the catalogue's data for GPUs given by name. If Costs is nil,
// it computes the table of the workload on these GPUs. Errors are those of [catalogue.Named],
// [estimate.Resolve] and [estimate.Table].
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
	if problem.Topology, err = catalogue.Named(problem.Topology, workload.Mode); err != nil || problem.Diffusion != nil {
		return problem, err
	}
	if problem.Costs != nil {
		return problem.copying()
	}
	if workload, err = estimate.Resolve(problem.Graph, estimate.On(problem.Graph, workload, problem.Topology)); err != nil {
		return problem, err
	}
	if problem.Costs, err = estimate.Table(problem.Graph, workload); err != nil {
		return problem, fmt.Errorf("counting %q: %w", problem.Graph.Name, err)
	}
	return problem.copying()
}

// unitsAlone returns the costs without Part, for methods that add up single units.
func unitsAlone(problem *Problem) *costmodel.Table {
	if problem.Costs.Part == nil || !problem.Unconstrained && problem.Objective != Time && problem.Offload == "" {
		return problem.Costs
	}
	alone := *problem.Costs
	alone.Part = nil
	return &alone
}

// resolve checks a problem and its constraints, once for all methods. The problem is one that
// [Problem.Resolved] returned.
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

// checkNames refuses values that no engine knows.
func checkNames(workload *costmodel.Workload) error {
	for _, field := range costmodel.Fields() {
		switch value := field.Text(workload); {
		case field.Name != "mode" && field.Name != "strategy" && field.Name != "schedule":
		case value != "" && !field.Known(workload):
			_, fault := field.Knows(value)
			return costmodel.Refuse(costmodel.Set(field.Name, value), "%s", cmp.Or(fault, fmt.Sprintf("%q is unknown (known: %s)", value, strings.Join(field.Values, ", "))))
		}
	}
	return nil
}

// checkRuns refuses workloads that no engine runs, which a caller's own table may have. It also
// refuses constraints if every device runs the whole model.
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
