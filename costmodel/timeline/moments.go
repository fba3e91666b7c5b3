package timeline

import "github.com/devmap-dev/devmap/costmodel"

// between is what a training program does between steps: evaluating and saving.
func between(table *costmodel.Table, all unitList, resident *Resident, engine func(*costmodel.Table, unitList, Resident) producer) (parts []producer) {
	if table.Saving > 0 {
		parts = append(parts, saved(table, all, resident))
	}
	if table.Evaluation == nil {
		return parts
	}
	units := make(unitList, len(table.Evaluation.Units))
	for i := range units {
		units[i] = &table.Evaluation.Units[i]
	}
	there := Resident{Workspace: resident.Workspace, Buckets: resident.Buckets}
	evaluates := func(emit func(stepEvent)) {
		emit(stepEvent{Change: activations(table.Retained[0]), Owner: ofLogits})
		engine(table.Evaluation, units, there)(func(event stepEvent) {
			if event.What != "" {
				event.What = "evaluation, " + event.What
			}
			emit(event)
		})
	}
	keeps := func(emit func(stepEvent)) {
		start(units, &there, func(event stepEvent) { event.What = ""; emit(event) })
		emit(stepEvent{Over: activations(table.Retained[1]), What: "evaluation, logits that are kept"})
	}
	return append(parts, evaluates, keeps)
}

// saved is a GPU that gathers a parameter for a checkpoint.
func saved(table *costmodel.Table, all unitList, resident *Resident) producer {
	return func(emit func(stepEvent)) {
		start(all, resident, func(event stepEvent) { event.What = ""; emit(event) })
		emit(stepEvent{Over: buffers(table.Saving), What: "saving a checkpoint"})
	}
}
