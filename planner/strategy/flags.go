package strategy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
)

// flag is one of those that ask for a workload.
type flag struct {
	name string
	// byDefault is the value that leaving it out means; "" where no value
	// means that.
	byDefault string
	// of is its value in a workload; "" where it is left out.
	of func(w *costmodel.Workload) string
}

// flags are all that `devmap plan` and `devmap estimate` take for a workload.
// A workload is what they say and no more, so that two workloads differ by
// the flags that differ.
var flags = []flag{
	{"mode", string(costmodel.Infer), func(w *costmodel.Workload) string { return string(w.Mode) }},
	{"batch", "1", func(w *costmodel.Workload) string { return number(w.Batch) }},
	{"micro-batches", "1", func(w *costmodel.Workload) string { return number(w.MicroBatches) }},
	{"seq", "", func(w *costmodel.Workload) string { return number(w.Seq) }},
	{"target-seq", "", func(w *costmodel.Workload) string { return number(w.TargetSeq) }},
	{"new-tokens", "0", func(w *costmodel.Workload) string { return number(w.NewTokens) }},
	{"images", "0", func(w *costmodel.Workload) string { return number(w.Images) }},
	{"image-size", "", func(w *costmodel.Workload) string { return number(w.ImageSize) }},
	{"precision", "", precision},
	{"optimizer", string(costmodel.AdamW), func(w *costmodel.Workload) string { return string(w.Optimizer) }},
	{"recompute", string(costmodel.RecomputeNone), func(w *costmodel.Workload) string { return string(w.Recompute) }},
	{"lora-rank", "0", func(w *costmodel.Workload) string { return number(w.LoRARank) }},
	{"lora-targets", "", func(w *costmodel.Workload) string { return strings.Join(w.LoRATargets, ",") }},
	{"lora-precision", "", func(w *costmodel.Workload) string { return string(w.LoRAPrecision) }},
	{"quantize", "off", func(w *costmodel.Workload) string { return string(w.Quantize) }},
	{"loss", string(costmodel.LossEager), func(w *costmodel.Workload) string { return string(w.Loss) }},
	{"attention", string(costmodel.SDPA), func(w *costmodel.Workload) string { return string(w.Attention) }},
	{"loss-only", "false", func(w *costmodel.Workload) string { return on(w.LossOnly) }},
	{"gradient-as-bucket-view", "false", func(w *costmodel.Workload) string { return on(w.GradientViews) }},
	{"ema", "false", func(w *costmodel.Workload) string { return on(w.EMA) }},
	{"strategy", "", func(w *costmodel.Workload) string { return string(w.Strategy) }},
	{"runtime", "", func(w *costmodel.Workload) string { return string(w.Runtime) }},
	{"schedule", "", func(w *costmodel.Workload) string { return string(w.Schedule) }},
	{"virtual-stages", "", func(w *costmodel.Workload) string { return number(w.VirtualStages) }},
	{"shard-degree", "", func(w *costmodel.Workload) string { return number(w.ShardDegree) }},
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func on(set bool) string {
	if set {
		return "true"
	}
	return ""
}

// precision is left out where tensors keep the types they are stored in.
func precision(w *costmodel.Workload) string {
	if w.StoredTypes {
		return ""
	}
	return string(w.Precision)
}

// value is that of a flag in a workload; "" where it is left out, or could be.
func (f *flag) value(w *costmodel.Workload) string {
	if v := f.of(w); v != f.byDefault {
		return v
	}
	return ""
}

// set is the flag with a value, as words of a command line.
func (f *flag) set(value string) []string {
	switch {
	case f.byDefault == "false" && value == "true":
		return []string{"--" + f.name}
	case f.byDefault == "false":
		return []string{"--" + f.name + "=" + value}
	}
	return []string{"--" + f.name, value}
}

// Flags are those of `devmap plan` that ask for a workload: with the model and
// the GPUs they reproduce a row's plan. Values that are the flags' defaults
// are left out, but for the strategy and its runtime.
func Flags(w *costmodel.Workload) []string {
	var out []string
	for i := range flags {
		if v := flags[i].value(w); v != "" {
			out = slices.Concat(out, flags[i].set(v))
		}
	}
	return out
}

// difference is what turns a command that asks for one workload into one that
// asks for another: flags to set in place of its own of the same name, and the
// names of those that it must not have. What comes with the strategy is not
// named.
func difference(from, to *costmodel.Workload) (set, without []string) {
	for i := range flags {
		f := &flags[i]
		was, is := f.value(from), f.value(to)
		switch {
		case was == is, was == "" && implied(f.name, to):
		case is != "":
			set = slices.Concat(set, f.set(is))
		case f.byDefault != "":
			set = slices.Concat(set, f.set(f.byDefault))
		default:
			without = append(without, f.name)
		}
	}
	return set, without
}

// implied reports that a flag has the value that its strategy gives it.
func implied(name string, w *costmodel.Workload) bool {
	switch name {
	case "runtime":
		return slices.Index(w.Strategy.Traits().Runtimes, w.Runtime) == 0
	case "schedule":
		return w.Schedule == costmodel.OneFOneB
	}
	return false
}
