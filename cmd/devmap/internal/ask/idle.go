package ask

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/costmodel"
)

// idleness is a case in which flags change nothing. They are taken there, so
// that one set of flags serves several modes and strategies, and a note says
// so.
type idleness struct {
	when func(w *costmodel.Workload) bool
	why  string
}

var (
	noStep = &idleness{
		func(w *costmodel.Workload) bool { return w.Mode != costmodel.Train },
		"only --mode train has a step",
	}
	nothingRuns = &idleness{
		func(w *costmodel.Workload) bool { return w.Mode == costmodel.Load },
		"under --mode load nothing runs",
	}
	noBuckets = &idleness{
		func(w *costmodel.Workload) bool {
			traits := w.Strategy.Traits()
			return w.Mode == costmodel.Train && !traits.Open && (!traits.Replicated || traits.ZeroStage > 0)
		},
		"DDP alone has buckets",
	}
	keptAnyway = &idleness{
		func(w *costmodel.Workload) bool {
			return w.Mode == costmodel.Train && !w.Strategy.Traits().Sequential && !w.Strategy.Traits().Open
		},
		"the loops of its engine keep the loss alone in any case",
	}
	noSchedule = &idleness{
		func(w *costmodel.Workload) bool {
			return !w.Strategy.Traits().Staged && !w.Strategy.Traits().Open && w.Mode != costmodel.Load
		},
		"a pipeline alone has a schedule",
	}
	allAlike = &idleness{
		func(w *costmodel.Workload) bool { return w.Mode == costmodel.Infer && w.Strategy.Traits().Staged },
		"without backward all schedules are one",
	}
)

// IdleNotes name the flags that were given and change nothing of a workload.
func (r *Request) IdleNotes(w *costmodel.Workload) []string {
	var out []string
	for _, idle := range []*idleness{noStep, nothingRuns, noBuckets, keptAnyway, noSchedule, allAlike} {
		if !idle.when(w) {
			continue
		}
		var names []string
		for i := range flags {
			if slices.Contains(flags[i].idle, idle) && moved(r.cmd.Flags().Lookup(flags[i].name)) {
				names = append(names, flags[i].name)
			}
		}
		verb := " changes nothing here: "
		if len(names) > 1 {
			verb = " change nothing here: "
		}
		if len(names) > 0 {
			out = append(out, "--"+strings.Join(names, ", --")+verb+idle.why)
		}
	}
	return out
}

// moved reports a flag that was given another value than its own.
func moved(f *pflag.Flag) bool { return f != nil && f.Changed && f.Value.String() != f.DefValue }
