package page

import (
	"fmt"
	"sync"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/report"
	"github.com/devmap-dev/devmap/executor/simulate"
	"github.com/devmap-dev/devmap/executor/watch"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Source is what a page shows.
type Source struct {
	Plan *devicemap.Plan
	// Sentence is the answer and Proof its proof. Limit says what sets the largest share. Bound has the
	// arguments of the proof, a sentence each.
	Sentence, Proof, Limit string
	Bound                  []string
	// Overhead names the memory that a plan counts outside the allocator.
	Overhead string
	// Facts are pairs of a name and a value. The page copies the value of "Command".
	Facts [][2]string
	// Graph and Costs are the plan's model and the costs of its units. If they are nil, Missing is a
	// sentence that says why.
	Graph   *modelgraph.Graph
	Costs   *costmodel.Table
	Placed  devicemap.Map // nil: every GPU runs the whole model
	Missing string
	// Program and Result are of devmap's own engine.
	Program *program.Program
	Result  *simulate.Result
	// Run is what a run measured. RunOn names what ran its steps in place of GPUs; empty: GPUs did. Speed is
	// a sentence. Watched is the report of a watched command. Readings has its readings for each GPU, nil if
	// they are not known.
	Run      *report.Report
	RunOn    string
	Speed    string
	Watched  *watch.Report
	Readings []watch.Readings
	Changes  []Change
	// NoChanges says why there are none.
	NoChanges string
	Front     []Point
	Now       *Now
}

// Of returns the page of a plan.
func Of(source *Source) *Page {
	plan := source.Plan
	page := &Page{
		FormatVersion: version, Title: title(plan), Categories: categories,
		Answer: answer{Verdict: plan.Verdict, Sentence: source.Sentence, Proof: source.Proof},
		GPUs:   gpusOf(plan, plan.Devices), Overhead: source.Overhead, PeakOpen: plan.Workload.Compile, Names: []string{},
		Why: &reasons{Limit: source.Limit, Bound: source.Bound, Changes: source.Changes, Note: source.NoChanges, Warnings: plan.Warnings, Now: source.Now},
	}
	for _, of := range source.Facts {
		page.Facts = append(page.Facts, fact{of[0], of[1], of[0] == "Command"})
	}
	if len(source.Front) > 0 {
		page.Why.Front = &front{"step", "peak", source.Front}
	}
	page.layers(plan)
	spans := sync.OnceValues(source.spans)
	page.memory(source, spans)
	page.unfollowed(plan.Devices)
	page.time(source, spans)
	if plan.StepSeconds != nil {
		page.Time.StepSeconds = plan.StepSeconds
	}
	if source.Run != nil {
		page.measured(source)
	}
	if source.Watched != nil {
		page.watched(source.Watched, source.Readings)
	}
	return page
}

// title names the model and the GPUs.
func title(plan *devicemap.Plan) string {
	devices := plan.Topology.Devices
	text := fmt.Sprintf("%s on %d GPUs", plan.Model.Name, len(devices))
	if len(devices) == 1 {
		text = plan.Model.Name + " on 1 GPU"
	}
	return text
}

// memory adds the memory over a step.
func (page *Page) memory(source *Source, spansOf func() ([]steptime.Span, error)) {
	plan := source.Plan
	switch {
	case len(plan.Phases) > 0:
		page.ofPhases(plan)
	case plan.Workload.Mode == costmodel.Serve:
		page.MemoryNote = "An engine that serves keeps its memory from the start, so there is no step to follow."
	case source.Program != nil:
		page.arenaMemory(simulationOf(source), plan.Devices)
	case source.Costs == nil:
		page.MemoryNote = source.Missing
	default:
		spans, _ := spansOf() // without them, moments have an order and no times
		page.followed(devicemap.Steps(source.Costs, &plan.Topology, source.Placed), plan.Devices, func(device int) *clock {
			if plan.Workload.Strategy.Traits().Replicated {
				device = 0
			}
			return clockOf(spans, device, source.Costs)
		})
		for i := range page.GPUs {
			if page.GPUs[i].Memory == nil && page.GPUs[i].PeakBytes > 0 {
				page.MemoryNote = "This devmap predicts another peak than the plan has: write the plan again."
			}
		}
	}
}

func simulationOf(source *Source) *simulation {
	of := &simulation{source.Program, source.Result, ticksPer}
	if !source.Program.Timed {
		of.scale = 1
	}
	return of
}

// time adds the lanes of a step.
func (page *Page) time(source *Source, spansOf func() ([]steptime.Span, error)) {
	plan := source.Plan
	page.Time = &lanes{}
	switch {
	case len(plan.Phases) > 0:
		for i := range plan.Phases {
			if of := &plan.Phases[i]; of.Seconds > 0 {
				page.Time.Phases = append(page.Time.Phases, duration{of.Name, of.Seconds})
			}
		}
		page.Time.Note = "The times of phases are known, not those within a phase."
		if len(page.Time.Phases) == 0 {
			page.Time.Note = "The times of the phases are not known on these GPUs."
		}
	case plan.Workload.Mode == costmodel.Serve:
		page.Time.Note = "An engine that serves has no step."
	case plan.Workload.Mode == costmodel.Load:
		page.Time.Note = "The plan is for weights alone: no step runs."
	case source.Program != nil:
		page.simulated(simulationOf(source))
	case source.Costs == nil:
		page.Time.Note = source.Missing
	default:
		page.stepped(source, spansOf)
	}
}

// stepped adds the lanes of an engine whose step the cost model times.
func (page *Page) stepped(source *Source, spansOf func() ([]steptime.Span, error)) {
	spans, err := spansOf()
	if err != nil {
		page.Time.Note = "The time of a step is not known: " + err.Error() + "."
		return
	}
	page.timed(spans, func(first, end int) string {
		units := source.Costs.Units
		if end == first+1 {
			return units[first].Name
		}
		return fmt.Sprintf("%s – %s", units[first].Name, units[end-1].Name)
	})
}

// With returns a page that shows another plan too; of nil, the other page.
func (page *Page) With(other *Page) *Page {
	if page == nil {
		return other
	}
	page.Others = append(page.Others, other)
	return page
}

// spans are what devices do in a step.
func (source *Source) spans() ([]steptime.Span, error) {
	var place []int
	for _, device := range source.Placed {
		place = append(place, int(device))
	}
	return steptime.Spans(source.Costs, &source.Plan.Topology, place)
}
