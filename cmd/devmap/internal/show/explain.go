package show

import (
	"context"
	"fmt"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// Explain says what binds, how the map was found, why no map is better, and
// the next-best changes, each tried out.
func (p *Printer) Explain(ctx context.Context, problem planner.Problem, asked *strategy.Problem, s *planner.Solution) {
	d := &s.Devices[s.Bottleneck]
	what := "binding"
	if s.Objective == planner.Time {
		what = "fullest"
	}
	p.printf("%s: GPU %d at its peak, %s: %s; it runs %s\n",
		what, s.Bottleneck, d.Predicted.PeakAt, parts(&d.Predicted), p.runs(s.Map, devicemap.Device(s.Bottleneck)))
	if s.Offloaded != nil {
		p.printf("method: units leave until the rest fits, so that few bytes travel; where the rest goes:\n")
	}
	p.printf("method: %s\n", s.Method)
	p.printf("bound: %s, after %s\n", boundReason(s), Plural(s.Probes, "target"))
	for _, b := range s.Arguments(&problem) {
		tight := ""
		if b.Name == s.Bound {
			tight = ", the tight one"
		}
		value := fmt.Sprintf("%.2f%%", 100*b.Value)
		if s.Objective == planner.Time {
			value = Seconds(b.Value)
		}
		p.printf("bound by %s: %s (%s)%s\n", b.Name, value, b.What, tight)
	}
	if ctx.Err() != nil {
		p.printf("change: none was tried, as the search was interrupted\n")
		return
	}
	if s.Offloaded != nil { // what would make all of it fit
		whole := *asked
		whole.Stay = true
		changes := strategy.Smallest(ctx, &whole)
		for i := range changes {
			p.printf("change: %s: nothing leaves the GPUs, %s\n", ask.Told(&changes[i]), comesTo(changes[i].Row.Solution))
		}
		if len(changes) == 0 {
			p.printf("change: none was found with which nothing leaves the GPUs\n")
		}
		return
	}
	changes := strategy.Next(ctx, asked, s.Value)
	for i := range changes {
		p.printf("change: %s: %s\n", ask.Told(&changes[i]), comesTo(changes[i].Row.Solution))
	}
	if len(changes) == 0 {
		p.printf("change: none was found that lowers the largest share\n")
	}
}

// comesTo is what a changed problem comes to, with its value.
func comesTo(s *planner.Solution) string {
	if s.Objective == planner.Time {
		return fmt.Sprintf("step %s, %s", Seconds(s.Value), outcome(s))
	}
	return fmt.Sprintf("largest share %.2f%%, %s", 100*s.Value, outcome(s))
}

// boundReason says which argument the lower bound rests on.
func boundReason(s *planner.Solution) string {
	better := "smaller share"
	if s.Objective == planner.Time {
		better = "shorter step"
	}
	switch s.Bound {
	case "largest unit":
		return "largest unit (one unit, or one tie group, takes that much by itself)"
	case "average":
		return "average (all bytes of a moment over all budgets)"
	case "search":
		return fmt.Sprintf("search (every %s was refuted)", better)
	case "relaxed search":
		return "relaxed search (every smaller share was refuted with units that differ little counted as the least of them)"
	}
	return s.Bound
}
