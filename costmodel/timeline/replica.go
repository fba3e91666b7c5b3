package timeline

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// replicas are the engines of the replicated strategies.
var replicas = map[costmodel.Strategy]func(table *costmodel.Table, all unitList, resident Resident) producer{
	costmodel.DDP:   whole,
	costmodel.Zero1: gathered,
	costmodel.Zero2: gathered,
	costmodel.Zero3: gathered,
	costmodel.FSDP:  sharded,
	costmodel.HSDP:  sharded,
}

func whole(table *costmodel.Table, all unitList, resident Resident) producer {
	resident.Generation = generation(table)
	return func(emit func(stepEvent)) { deviceMap(table.Workload.Mode, all, &resident, emit) }
}

// Replica is one GPU that runs the whole model on its own data ([costmodel.Traits]). A strategy that
// has no such engine is an error.
func Replica(table *costmodel.Table, dev *costmodel.Device) (Step, error) {
	engine, ok := replicas[table.Workload.Strategy]
	if table.Workload.Runtime == value.JAX { // one program; its units hold shards
		engine = whole
	}
	if !ok {
		return Step{}, &costmodel.FieldError{Field: "strategy", Msg: costmodel.Messagef("%q is no strategy whose replicas have a timeline", table.Workload.Strategy)}
	}
	all := make(unitList, len(table.Units))
	for i := range all {
		all[i] = &table.Units[i]
	}
	resident := ResidentOn(table, table.InputDevice, dev, false)
	resident.Prepared = prepared(table, all)
	if there := !table.Flat && table.Workload.BuiltOn != value.BuiltOnGPU && !value.OnHost(table.Workload.BuiltOn, table.Workload.Quantize); there && resident.Prepared+dev.ContextBytes > dev.Budget() {
		resident.Prepared = 0 // a model that a GPU cannot hold like this was not built there
	}
	return Step{parts: append([]producer{engine(table, all, resident)}, between(table, all, &resident, engine)...)}, nil
}

// prepared is a GPU's memory while the model is sharded: whole parameters and shards.
func prepared(table *costmodel.Table, all unitList) int64 {
	sum := table.Prepared
	for _, unit := range all {
		sum += unit.Params + unit.Padding
	}
	if table.Prepared == 0 {
		return 0
	}
	return sum
}

// generation is what generating takes in addition to the weights, before a step.
func generation(table *costmodel.Table) costmodel.Memory {
	if len(table.Generation) == 0 {
		return costmodel.Memory{}
	}
	all := make(unitList, len(table.Generation))
	for i := range all {
		all[i] = &table.Generation[i]
	}
	most := walk(func(emit func(stepEvent)) { deviceMap(costmodel.Infer, all, &Resident{}, emit) }).Memory
	return costmodel.Memory{Activations: most.Activations + table.GenerationCopies, KVCache: most.KVCache}
}
