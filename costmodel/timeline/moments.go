package timeline

import "github.com/devmap-dev/devmap/costmodel"

// between is the largest peak of a step and of a training program's evaluating and saving between steps.
func between(table *costmodel.Table, all unitList, resident *Resident, engine func(*costmodel.Table, unitList, Resident) producer, peak Peak) Peak {
	larger := func(other Peak) {
		if other.Memory.Total() > peak.Memory.Total() {
			peak = other
		}
	}
	if table.Saving > 0 {
		larger(saved(table, all, resident))
	}
	if table.Evaluation == nil {
		return peak
	}
	units := make(unitList, len(table.Evaluation.Units))
	for i := range units {
		units[i] = &table.Evaluation.Units[i]
	}
	there := Resident{Workspace: resident.Workspace, Buckets: resident.Buckets}
	larger(walk(func(emit func(stepEvent)) {
		emit(stepEvent{Change: activations(table.Retained[0])})
		engine(table.Evaluation, units, there)(func(event stepEvent) {
			if event.What != "" {
				event.What = "evaluation, " + event.What
			}
			emit(event)
		})
	}))
	larger(walk(func(emit func(stepEvent)) {
		start(units, &there, func(event stepEvent) { event.What = ""; emit(event) })
		emit(stepEvent{Over: activations(table.Retained[1]), What: "evaluation, logits that are kept"})
	}))
	return peak
}

// saved is a GPU that gathers a parameter for a checkpoint.
func saved(table *costmodel.Table, all unitList, resident *Resident) Peak {
	return walk(func(emit func(stepEvent)) {
		start(all, resident, func(event stepEvent) { event.What = ""; emit(event) })
		emit(stepEvent{Over: buffers(table.Saving), What: "saving a checkpoint"})
	})
}
