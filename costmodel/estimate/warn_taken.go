package estimate

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// takenElsewhere warns about declared costs from another workload. Bytes without a growth rule are
// right only for their micro-batch and lengths, all bytes only for their precision.
func takenElsewhere(_ *costmodel.Table, model *layers.Model) []costmodel.Message {
	taken, workload := model.Graph.Taken, &model.Workload
	switch {
	case workload.Mode == costmodel.Load || layers.Taped(model):
		return nil
	case layers.TapedElsewhere(model):
		planned := [3]int64{layers.MicroBatch(workload), workload.Seq, workload.TargetSeq}
		was := [3]int64{taken.Batch, taken.Seq, taken.TargetSeq}
		return []costmodel.Message{costmodel.Messagef("the memory of a step was followed with %s and does not say how it grows: with %s, peaks are sums over layers, which are less exact; export with inputs of these sizes",
			sizes(was, was), sizes(planned, was))}
	}
	all, still := declaredBytes(model)
	var out []costmodel.Message
	if len(all) > 0 && taken.Precision != "" && taken.Precision != string(workload.Precision) {
		out = append(out, costmodel.Messagef("the declared costs of %q%s were taken in %s and are counted as they are; %v needs others: export the model in that type",
			all[0], more(all), taken.Precision, costmodel.Set("precision", workload.Precision)))
	}
	batch := layers.MicroBatch(workload)
	apart := taken.Batch > 0 && taken.Batch != batch || taken.Seq > 0 && taken.Seq != workload.Seq || taken.TargetSeq > 0 && taken.TargetSeq != workload.TargetSeq
	if len(still) > 0 && apart {
		out = append(out, costmodel.Messagef("the declared costs of %q%s were taken with %d sequences of %d tokens at once and do not say how they grow: they are counted as they are with %d of %d",
			still[0], more(still), taken.Batch, taken.Seq, batch, workload.Seq))
	}
	return out
}

// sizes says a batch, and the lengths that an export had.
func sizes(values, had [3]int64) costmodel.Message {
	said := costmodel.Messagef("%v", costmodel.Set("batch", values[0]))
	for at, field := range []string{"seq", "target_seq"} {
		if had[at+1] > 0 {
			said = costmodel.Messagef("%v %v", said, costmodel.Set(field, values[at+1]))
		}
	}
	return said
}

// declaredBytes names the layers with declared bytes, and those of them without a growth rule.
func declaredBytes(model *layers.Model) (all, still []string) {
	for i := range model.Layers {
		declared := model.Layers[i].Declared
		if declared == nil {
			continue
		}
		most := max(declared.ActivationBytes, declared.WorkspaceBytes, declared.OutputBytes)
		switch {
		case grows(declared):
			all = append(all, model.Layers[i].Name)
		case most > 0:
			all, still = append(all, model.Layers[i].Name), append(still, model.Layers[i].Name)
		}
	}
	return all, still
}

// grows reports bytes that say how they grow with the workload.
func grows(declared *modelgraph.Declared) bool {
	fixed := modelgraph.NotDeclared()
	return declared.Growth != fixed.Growth
}

// more counts the names after the first.
func more(names []string) string {
	if len(names) == 1 {
		return ""
	}
	return fmt.Sprintf(" and %d more", len(names)-1)
}

// trainedApart warns that stages of torch.distributed.pipelining hold copies of a tied parameter.
// Modules that devmap.export read keep theirs on one stage.
func trainedApart(_ *costmodel.Table, model *layers.Model) []costmodel.Message {
	if model.Workload.Runtime != value.Torch || !model.Rules.Untied || !model.Train || model.Frozen {
		return nil
	}
	for _, tie := range model.Graph.Ties {
		bound := false
		for i := range model.Graph.Staged {
			names := 0
			for _, layer := range model.Graph.Staged[i].Layers {
				for _, name := range tie {
					if name == layer || strings.HasPrefix(name, layer+".") {
						names++
					}
				}
			}
			bound = bound || names >= len(tie)
		}
		if !bound {
			return []costmodel.Message{costmodel.Messagef("%q and %q are one parameter: two stages have copies of it, which train apart unless their gradients are added up before each optimizer step", tie[0], tie[1])}
		}
	}
	return nil
}
