package watching

import (
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/watch"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// asked are fields of a workload that a command sets. Those that say how the model is
// spread are the map's.
var asked = []string{
	"batch", "micro_batches", "seq", "precision", "optimizer", "recompute", "lora_rank", "lora_precision",
	"loss", "attention", "loss_only", "gradient_as_bucket_view", "ema", "preset", "built_on",
}

// Variants predicts a plan's map again under settings that a command may have in place
// of the plan's: the settings that are easily forgotten, one at a time. There are none if
// the plan is not what devmap would predict today.
func Variants(graph *modelgraph.Graph, plan *devicemap.Plan) []watch.Variant {
	today, ok := predict(graph, plan, &plan.Workload)
	if !ok || !samePeaks(today, plan.Devices) {
		return nil
	}
	var all []watch.Variant
	try := func(values ...func(*costmodel.Workload) costmodel.Setting) {
		workload := plan.Workload
		var words []string
		for _, value := range values {
			words = append(words, ask.Say(value(&workload)))
		}
		devices, ok := predict(graph, plan, &workload)
		same := func(one watch.Variant) bool { return samePeaks(one.Devices, devices) }
		trainer := strings.HasPrefix(words[0], "--preset") // several are one path
		if ok && !samePeaks(devices, today) && (!trainer || !slices.ContainsFunc(all, same)) {
			all = append(all, watch.Variant{Setting: strings.Join(words, " "), Devices: devices})
		}
	}
	fields := costmodel.Fields()
	each := func(names []string, visit func(value func(*costmodel.Workload) costmodel.Setting)) {
		for i := range fields {
			if slices.Contains(names, fields[i].Name) {
				for _, value := range others(&fields[i], &plan.Workload) {
					visit(value)
				}
			}
		}
	}
	each(asked, func(value func(*costmodel.Workload) costmodel.Setting) { try(value) })
	// A trainer comes with a setting of its own: two changes at once.
	each([]string{"preset"}, func(trainer func(*costmodel.Workload) costmodel.Setting) {
		each([]string{"precision", "recompute", "loss_only", "built_on"}, func(value func(*costmodel.Workload) costmodel.Setting) { try(trainer, value) })
	})
	return all
}

// others are the other values of a field, each as what sets it: every other one
// that has a name; of sizes those up to a factor of four apart; no adapters.
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
	default:
		for _, name := range field.Values {
			if name == "auto" { // a planner chooses then; a command has what was chosen
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

// doesNotFit is the kind of [devicemap.Fault] that leaves a map one that can be run.
const doesNotFit = "does-not-fit"

// predict is what the plan's map holds at its peaks under a workload; not ok where
// no engine runs it so.
func predict(graph *modelgraph.Graph, plan *devicemap.Plan, workload *costmodel.Workload) ([]devicemap.Prediction, bool) {
	table, err := ask.Costs(graph, *workload)
	if err != nil {
		return nil, false
	}
	table.Marks = nil // peaks alone are compared
	report := devicemap.Check(graph, table, &plan.Topology, plan.DeviceMap, nil)
	faults := slices.ContainsFunc(report.Faults, func(fault devicemap.Fault) bool { return fault.Kind != doesNotFit })
	return report.Devices, !faults && len(report.Devices) == len(plan.Devices)
}

// samePeaks reports equal peaks.
func samePeaks(one, other []devicemap.Prediction) bool {
	return slices.EqualFunc(one, other, func(one, other devicemap.Prediction) bool {
		return one.Predicted.PeakAllocatedBytes == other.Predicted.PeakAllocatedBytes
	})
}
