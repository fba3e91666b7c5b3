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
	when func(workload *costmodel.Workload) bool
	why  string
}

var (
	noStep = &idleness{
		func(workload *costmodel.Workload) bool { return workload.Mode != costmodel.Train },
		"only --mode train has a step",
	}
	noMoments = &idleness{
		func(workload *costmodel.Workload) bool {
			return workload.Mode == costmodel.Train && !strings.HasPrefix(workload.Optimizer, "adamw")
		},
		"it is AdamW's",
	}
	nothingRuns = &idleness{
		func(workload *costmodel.Workload) bool { return workload.Mode == costmodel.Load },
		"under --mode load nothing runs",
	}
	noBuckets = &idleness{
		func(workload *costmodel.Workload) bool {
			traits := workload.Strategy.Traits()
			return workload.Mode == costmodel.Train && !traits.Open && (!traits.Replicated || traits.ZeroStage > 0)
		},
		"DDP alone has buckets",
	}
	lossAlways = &idleness{
		func(workload *costmodel.Workload) bool {
			return workload.Mode == costmodel.Train && !workload.Strategy.Traits().Sequential && !workload.Strategy.Traits().Open
		},
		"the loops of its engine keep the loss alone in any case",
	}
	noSchedule = &idleness{
		func(workload *costmodel.Workload) bool {
			return !workload.Strategy.Traits().Staged && !workload.Strategy.Traits().Open && workload.Mode != costmodel.Load
		},
		"a pipeline alone has a schedule",
	}
	allAlike = &idleness{
		func(workload *costmodel.Workload) bool {
			return workload.Mode == costmodel.Infer && workload.Strategy.Traits().Staged
		},
		"without backward all schedules are one",
	}
)

// IdleNotes name the flags that were given and change nothing of a workload.
func (request *Request) IdleNotes(workload *costmodel.Workload) []string {
	out := slices.Clone(request.presetNotes)
	for _, idle := range []*idleness{noStep, noMoments, nothingRuns, noBuckets, lossAlways, noSchedule, allAlike} {
		if !idle.when(workload) {
			continue
		}
		var names []string
		for i := range flags {
			if slices.Contains(flags[i].idle, idle) && moved(request.cmd.Flags().Lookup(flags[i].name)) {
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
