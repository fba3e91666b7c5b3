package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/costmodel"
)

// idle is a flag that changes nothing for some workloads. It is taken there,
// so that one set of flags serves several modes and strategies, and a note
// says so.
type idle struct {
	flags []string
	when  func(w *costmodel.Workload) bool
	why   string
}

var idles = []idle{
	{
		[]string{"optimizer", "recompute", "loss", "loss-only", "ema", "gradient-as-bucket-view"},
		func(w *costmodel.Workload) bool { return w.Mode != costmodel.Train },
		"only --mode train has a step",
	},
	{
		[]string{"batch", "micro-batches", "seq", "target-seq", "images", "image-size", "attention", "schedule"},
		func(w *costmodel.Workload) bool { return w.Mode == costmodel.Load },
		"under --mode load nothing runs",
	},
	{
		[]string{"gradient-as-bucket-view"},
		func(w *costmodel.Workload) bool {
			traits := w.Strategy.Traits()
			return w.Mode == costmodel.Train && !traits.Open && (!traits.Replicated || traits.ZeroStage > 0)
		},
		"DDP alone has buckets",
	},
	{
		[]string{"loss-only"},
		func(w *costmodel.Workload) bool {
			return w.Mode == costmodel.Train && !w.Strategy.Traits().Sequential && !w.Strategy.Traits().Open
		},
		"the loops of its engine keep the loss alone in any case",
	},
	{
		[]string{"schedule", "virtual-stages"},
		func(w *costmodel.Workload) bool {
			return !w.Strategy.Traits().Staged && !w.Strategy.Traits().Open && w.Mode != costmodel.Load
		},
		"a pipeline alone has a schedule",
	},
	{
		[]string{"schedule"},
		func(w *costmodel.Workload) bool { return w.Mode == costmodel.Infer && w.Strategy.Traits().Staged },
		"without backward all schedules are one",
	},
}

// idleNotes names the flags that were given and change nothing.
func idleNotes(cmd *cobra.Command, w *costmodel.Workload) []string {
	var out []string
	for i := range idles {
		given := slices.DeleteFunc(slices.Clone(idles[i].flags), func(name string) bool {
			f := cmd.Flags().Lookup(name)
			return f == nil || !f.Changed || f.Value.String() == f.DefValue
		})
		if len(given) == 0 || !idles[i].when(w) {
			continue
		}
		verb := " changes nothing here: "
		if len(given) > 1 {
			verb = " change nothing here: "
		}
		out = append(out, "--"+strings.Join(given, ", --")+verb+idles[i].why)
	}
	return out
}
