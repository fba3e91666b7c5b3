package watching

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/watch"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// asked lists the fields of a workload that a command sets, the most likely first. Fields about the
// distribution of the model belong to the map, except the runtime.
var asked = []string{
	"preset", "precision", "loss_only", "recompute", "attention", "micro_batches", "built_on", "loss", "liger", "optimizer", "lora_rank",
	"lora_targets", "lora_precision", "lora_dropout", "gradient_as_bucket_view", "ema", "runtime", "batch", "seq",
}

// change is a setting that a command may have instead of the plan's.
type change struct {
	field string
	set   func(*costmodel.Workload) costmodel.Setting
}

// size reports a change of the amount of work.
func (change *change) size() bool {
	return slices.Contains([]string{"batch", "seq", "micro_batches"}, change.field)
}

// variants predicts a plan's map under changed settings.
type variants struct {
	graph *modelgraph.Graph
	plan  *devicemap.Plan
	late  func() bool
	yield func(watch.Variant) bool
	seen  map[string]bool // peaks of fewer changes, which explain as much
	ended bool
}

// Variants predicts a plan's map again with settings that a command may have instead of the plan's.
// If the plan is older, today's devmap comes first. Then one setting changes, then two, two under a
// trainer's preset, and one with a size. It ends when late returns true.
func Variants(graph *modelgraph.Graph, plan *devicemap.Plan, late func() bool) iter.Seq[watch.Variant] {
	return func(yield func(watch.Variant) bool) {
		try := variants{graph: graph, plan: plan, late: late, yield: yield, seen: map[string]bool{}}
		if today, ok := predict(graph, plan, &plan.Workload); ok {
			peaks := peaksOf(today)
			if peaks != peaksOf(plan.Devices) {
				try.give(watch.Variant{Setting: "this version of devmap", Devices: today})
			}
			try.seen[peaks] = true
		}
		try.all(changesOf(&plan.Workload))
	}
}

func changesOf(workload *costmodel.Workload) (all []change) {
	fields := costmodel.Fields()
	for _, name := range asked {
		at := slices.IndexFunc(fields, func(field costmodel.Field) bool { return field.Name == name })
		if at < 0 {
			continue
		}
		for _, set := range others(&fields[at], workload) {
			all = append(all, change{name, set})
		}
	}
	return all
}

// all tries changes alone, in pairs, and in pairs under each preset.
func (try *variants) all(changes []change) {
	var single, known []string
	var distinct []change // values of a field with equal peaks count as one
	for i := range changes {
		peaks := try.apply(1, changes[i])
		of := changes[i].field + peaks
		if peaks == "" || !slices.Contains(known, of) {
			distinct = append(distinct, changes[i])
		}
		single, known = append(single, peaks), append(known, of)
	}
	try.remember(single)
	changes = distinct
	pairs := try.pairs(2, nil, changes, func(one, other *change) bool { return !one.size() && !other.size() })
	pairs = append(pairs, single...)
	try.remember(pairs)
	for i := range changes {
		if changes[i].field == "preset" {
			try.pairs(3, &changes[i], changes, func(one, other *change) bool {
				return !one.size() && !other.size() && one.field != "preset" && other.field != "preset"
			})
		}
	}
	try.pairs(3, nil, changes, func(one, other *change) bool { return one.size() != other.size() })
}

// pairs tries two changes of different fields, with a third one if under is not nil.
func (try *variants) pairs(far int, under *change, changes []change, take func(one, other *change) bool) (peaks []string) {
	for i := range changes {
		for j := i + 1; j < len(changes); j++ {
			one, other := &changes[i], &changes[j]
			switch {
			case one.field == other.field || !take(one, other):
			case under != nil:
				peaks = append(peaks, try.apply(far, *under, *one, *other))
			default:
				peaks = append(peaks, try.apply(far, *one, *other))
			}
		}
	}
	return peaks
}

// remember records peaks that must not be reported again.
func (try *variants) remember(peaks []string) {
	for _, one := range peaks {
		try.seen[one] = true
	}
}

// apply predicts the map with changes, and reports a prediction that fewer changes do not give. It
// returns its peaks. It reports only one of the presets with the same code path.
func (try *variants) apply(far int, changes ...change) string {
	if try.ended = try.ended || try.late(); try.ended {
		return ""
	}
	workload := try.plan.Workload
	var words []string
	for _, change := range changes {
		words = append(words, ask.Say(change.set(&workload)))
	}
	devices, ok := predict(try.graph, try.plan, &workload)
	peaks := peaksOf(devices)
	if !ok || try.seen[peaks] {
		return peaks
	}
	if changes[0].field == "preset" {
		try.seen[peaks] = true
	}
	try.give(watch.Variant{Setting: strings.Join(words, " "), Devices: devices, Changes: far})
	return peaks
}

func (try *variants) give(variant watch.Variant) { try.ended = try.ended || !try.yield(variant) }

// others returns functions that set the other values of a field: every named value, and sizes up to
// a factor of four apart. It returns none for adapters in a plan without them.
func others(field *costmodel.Field, now *costmodel.Workload) []func(*costmodel.Workload) costmodel.Setting {
	var all []func(*costmodel.Workload) costmodel.Setting
	switch value := field.Ref(now).(type) {
	case *bool:
		other := !*value
		all = append(all, func(workload *costmodel.Workload) costmodel.Setting {
			if at, ok := field.Ref(workload).(*bool); ok {
				*at = other
			}
			return costmodel.Set(field.Name, other)
		})
	case *int64:
		for _, size := range sizes(field.Name, *value) {
			all = append(all, func(workload *costmodel.Workload) costmodel.Setting {
				if at, ok := field.Ref(workload).(*int64); ok {
					*at = size
				}
				return costmodel.Set(field.Name, strconv.FormatInt(size, 10))
			})
		}
	case *[]string:
		for _, targets := range []string{"all-linear", "q_proj,v_proj"} { // users' choice, and PEFT's default
			if now.LoRARank == 0 {
				continue
			}
			all = append(all, func(workload *costmodel.Workload) costmodel.Setting {
				if at, ok := field.Ref(workload).(*[]string); ok {
					*at = strings.Split(targets, ",")
				}
				return costmodel.Set(field.Name, targets)
			})
		}
	default:
		for _, name := range field.Values {
			if !tried(field.Name, name, now) {
				continue
			}
			all = append(all, func(workload *costmodel.Workload) costmodel.Setting {
				field.Set(workload, name)
				workload.StoredTypes = workload.StoredTypes && field.Name != "precision"
				return costmodel.Set(field.Name, name)
			})
		}
	}
	return all
}

// tried reports a named value that a run can have: "auto" is only for the planner, torch has two
// runtimes, and only adapters have their own type.
func tried(field, name string, now *costmodel.Workload) bool {
	switch {
	case name == "auto":
		return false
	case field == "runtime":
		return name == "torch" || name == "lightning"
	}
	return field != "lora_precision" || now.LoRARank > 0
}

func sizes(field string, now int64) []int64 {
	if field == "lora_rank" {
		if now == 0 {
			return nil
		}
		return []int64{0}
	}
	all := []int64{2 * now, 4 * now}
	for _, part := range []int64{2, 4} {
		if now%part == 0 {
			all = append(all, now/part)
		}
	}
	return all
}

// doesNotFit is the kind of [devicemap.Fault] with which a map still runs.
const doesNotFit = "does-not-fit"

// predict returns the peaks of the plan's map under a workload; false if no engine runs it.
func predict(graph *modelgraph.Graph, plan *devicemap.Plan, workload *costmodel.Workload) ([]devicemap.Prediction, bool) {
	table, err := ask.Costs(graph, *workload)
	if err != nil {
		return nil, false
	}
	table.Marks = nil // only peaks are compared
	report := devicemap.Check(graph, table, &plan.Topology, plan.DeviceMap, nil)
	faults := slices.ContainsFunc(report.Faults, func(fault devicemap.Fault) bool { return fault.Kind != doesNotFit })
	return report.Devices, !faults && len(report.Devices) == len(plan.Devices)
}

// peaksOf returns a key of the peaks.
func peaksOf(devices []devicemap.Prediction) string {
	var name []byte
	for i := range devices {
		name = strconv.AppendInt(append(name, ' '), devices[i].Predicted.PeakAllocatedBytes, 16)
	}
	return string(name)
}
