package estimate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// resolveDegrees drops degrees of 1, and cuts parameters over all replicas of a stage if nothing
// else was asked for, as torchtitan does (data_parallel_shard_degree: -1).
func resolveDegrees(workload *costmodel.Workload) {
	if workload.Runtime == value.Torchtitan || equalStages(workload) && (workload.TP == 0 || workload.TP == 1) {
		workload.SequenceParallel = false // training/arguments.py, validate_args; torchtitan always has it
	}
	gridDegrees(workload)
	for _, degree := range []*costmodel.Degree{&workload.DP, &workload.TP, &workload.CP, &workload.EP} {
		if *degree == 1 {
			*degree = 0
		}
	}
	if workload.PP == 1 && !equalStages(workload) {
		workload.PP = 0
	}
	replicas := workload.DP.Count()
	switch {
	case equalStages(workload) && openGrid(workload):
		return
	case equalStages(workload): // parts of sequences are replicas of the weights
		replicas *= workload.CP.Count()
	}
	if replicas > 1 && workload.ShardDegree == 0 && workload.Strategy.Traits().Staged {
		workload.ShardDegree = replicas
	}
}

// equalStages reports an engine that gives all stages the same degrees.
func equalStages(workload *costmodel.Workload) bool {
	return workload.Runtime == value.Megatron || workload.Runtime == value.Torchtitan
}

// gridDegrees fills in missing degrees as Megatron and torchtitan do (training/arguments.py,
// data_parallel_size; distributed/parallel_dims.py). Replicas take the remaining GPUs, or stages do
// if replicas are given.
func gridDegrees(workload *costmodel.Workload) {
	if !equalStages(workload) || !workload.Strategy.Traits().Staged {
		return
	}
	if openGrid(workload) {
		if workload.DP == 0 { // they share the batch
			workload.DP = costmodel.AutoDegree
		}
		return
	}
	left := max(1, workload.World/(workload.TP.Count()*workload.CP.Count()))
	switch {
	case workload.PP == 0 && workload.DP == 0:
		workload.PP, workload.DP = 1, costmodel.Degree(left)
	case workload.PP == 0:
		workload.PP = costmodel.Degree(max(1, left/workload.DP.Count()))
	case workload.DP == 0:
		workload.DP = costmodel.Degree(max(1, left/workload.PP.Count()))
	}
}

// openGrid reports a degree that is still to be chosen.
func openGrid(workload *costmodel.Workload) bool {
	return slices.Contains([]costmodel.Degree{workload.DP, workload.TP, workload.CP, workload.EP, workload.PP}, costmodel.AutoDegree)
}

// checkGrid refuses degrees with a wrong product, and degrees of other engines.
func checkGrid(workload *costmodel.Workload) error {
	if !equalStages(workload) {
		return checkNoGrid(workload)
	}
	ep := workload.EP.Count()
	switch {
	case workload.EP == costmodel.AutoDegree && workload.ExpertCapacity >= 1: // each number is asked
	case workload.ExpertCapacity > 1 && ep == 1:
		return refuse("expert_capacity", workload.ExpertCapacity, "each GPU has all experts, and gets the mean of their tokens: give %v, or leave it out", costmodel.Setting{Field: "ep"})
	case workload.ExpertCapacity != 0 && !(workload.ExpertCapacity >= 1 && workload.ExpertCapacity <= float64(max(1, ep))):
		return refuse("expert_capacity", workload.ExpertCapacity, "%v is not between the mean, 1, and all tokens on one of the %d GPUs with experts", workload.ExpertCapacity, ep)
	case openGrid(workload) && workload.Runtime == value.Megatron && workload.ShardDegree > 1:
		return refuse("shard_degree", workload.ShardDegree, "Megatron's optimizer is cut over all replicas, whose number is open, or over none: use %v, or leave it out", costmodel.Set("shard_degree", 1))
	}
	if err := checkDivisors(workload); err != nil || openGrid(workload) {
		return err
	}
	return cmp.Or(checkCounts(workload), checkParts(workload))
}

// checkNoGrid refuses the degrees of Megatron and torchtitan under another engine.
func checkNoGrid(workload *costmodel.Workload) error {
	for _, field := range costmodel.Fields() {
		if text := field.Text(workload); text != "" && slices.Contains([]string{"cp", "ep", "pp", "sequence_parallel", "expert_capacity"}, field.Name) {
			return refuse(field.Name, text, "%v has no such degree (%v and %v do)", costmodel.Set("runtime", workload.Runtime), costmodel.Set("runtime", value.Megatron), costmodel.Set("runtime", value.Torchtitan))
		}
	}
	return nil
}

// checkDivisors refuses degrees that do not divide the number of GPUs.
func checkDivisors(workload *costmodel.Workload) error {
	for _, one := range []struct {
		field  string
		degree costmodel.Degree
	}{{"tp", workload.TP}, {"cp", workload.CP}, {"pp", workload.PP}, {"dp", workload.DP}} {
		if one.degree != costmodel.AutoDegree && workload.World%one.degree.Count() != 0 {
			return refuse(one.field, one.degree, "%d does not divide the %d GPUs (%s)", one.degree, workload.World, value.NearestDivisors(one.degree.Count(), workload.World, nil))
		}
	}
	return nil
}

// checkCounts refuses degrees with a product other than the number of GPUs.
func checkCounts(workload *costmodel.Workload) error {
	dp, tp, cp, pp := workload.DP.Count(), workload.TP.Count(), workload.CP.Count(), workload.PP.Count()
	if dp*tp*cp*pp == workload.World {
		return nil
	}
	return refuse("dp", workload.DP, "dp %d × tp %d × cp %d × pp %d are %d GPUs, and there are %d: leave one of them out", dp, tp, cp, pp, dp*tp*cp*pp, workload.World)
}

// checkParts refuses what replicas, experts and parts of sequences cannot share.
func checkParts(workload *costmodel.Workload) error {
	dp, tp, cp, ep := workload.DP.Count(), workload.TP.Count(), workload.CP.Count(), workload.EP.Count()
	titan := workload.Runtime == value.Torchtitan
	switch {
	case titan && max(1, workload.ShardDegree)*tp%ep != 0: // parallel_dims.py, build_mesh: efsdp
		return refuse("ep", workload.EP, "experts are shared within the %d GPUs that cut parameters × %d that cut matrices, and %d GPUs do not divide these", max(1, workload.ShardDegree), tp, ep)
	case workload.Runtime == value.Megatron && workload.ShardDegree > 1 && workload.ShardDegree != dp*cp:
		return refuse("shard_degree", workload.ShardDegree, "Megatron's optimizer is cut over all %d replicas or over none: use %v, or leave it out", dp*cp, costmodel.Set("shard_degree", 1))
	case !titan && dp*cp%ep != 0:
		return refuse("ep", workload.EP, "experts are shared within the %d replicas × %d parts of a sequence, and %d GPUs do not divide these", dp, cp, ep)
	case workload.Seq%(2*cp) != 0 && cp > 1:
		return refuse("cp", workload.CP, "%d GPUs take two parts each of a sequence, and %d tokens have no %d equal parts", cp, workload.Seq, 2*cp)
	case titan && workload.Seq/cp%tp != 0: // trainer.py, seq_len_divisor
		return refuse("tp", workload.TP, "%d tokens have no %d equal parts, and torchtitan cuts them", workload.Seq/cp, tp)
	case workload.SequenceParallel && workload.Seq/cp%tp != 0:
		return refuse("sequence_parallel", true, "%d tokens have no %d equal parts", workload.Seq/cp, tp)
	}
	return nil
}

// checkExperts refuses degrees that experts cannot be cut by.
func checkExperts(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	if !equalStages(workload) {
		return nil
	}
	ep, tp, found := workload.EP.Count(), workload.TP.Count(), false
	for i := range graph.Layers {
		op, ok := graph.Layers[i].Op.(modelgraph.MoE)
		if !ok {
			continue
		}
		found = true
		if err := checkCutExperts(&graph.Layers[i], workload); err != nil {
			return err
		}
		switch {
		case op.Experts%ep != 0:
			return refuse("ep", workload.EP, "layer %q has %d experts, which %d GPUs cannot share out evenly (%s)", graph.Layers[i].Name, op.Experts, ep, value.NearestDivisors(ep, op.Experts, nil))
		case workload.Runtime == value.Torchtitan && (op.Clamped || op.Dense) && ep > 1:
			return refuse("ep", workload.EP, "layer %q has experts of a form that devmap does not count under %v (%v works)", graph.Layers[i].Name, costmodel.Set("runtime", workload.Runtime), costmodel.Set("ep", 1))
		case workload.Runtime != value.Torchtitan && op.Hidden%tp != 0:
			return refuse("tp", workload.TP, "layer %q has experts of %d features, which %d GPUs cannot share out evenly (%s)", graph.Layers[i].Name, op.Hidden, tp, value.NearestDivisors(tp, op.Hidden, nil))
		}
	}
	if !found && ep > 1 {
		return refuse("ep", workload.EP, "no layer of the model has experts (%v)", costmodel.Set("ep", 1))
	}
	return nil
}

// checkCutExperts refuses tensor parallelism under which experts do not run or are not counted.
func checkCutExperts(layer *modelgraph.Layer, workload *costmodel.Workload) error {
	switch {
	case workload.TP == 0:
	case workload.Runtime == value.Megatron && !workload.SequenceParallel && workload.TP != costmodel.AutoDegree: // core/transformer/moe/moe_layer.py, MoELayer.forward
		return refuse("tp", workload.TP, "Megatron trains experts under tensor parallelism with sequence parallelism alone: add %v, or use %v", costmodel.Setting{Field: "sequence_parallel"}, costmodel.Set("tp", 1))
	case workload.Runtime == value.Torchtitan && workload.TP != costmodel.AutoDegree && workload.EP.Count() == 1 && workload.EP != costmodel.AutoDegree:
		return refuse("tp", workload.TP, "layer %q has experts, which devmap counts under torchtitan's tensor parallelism if GPUs share them out: add %v, or use %v", layer.Name, costmodel.Setting{Field: "ep"}, costmodel.Set("tp", 1))
	}
	return nil
}

// spread reports stages of several GPUs, or degrees that are still open.
func spread(workload *costmodel.Workload) bool {
	return workload.DP != 0 || workload.TP != 0 || workload.CP != 0
}

// open reports that the form of each stage is to be chosen.
func open(workload *costmodel.Workload) bool {
	return openGrid(workload) || workload.Recompute == value.RecomputeAuto
}

// checkOpen refuses forms that are open if none can be chosen.
func checkOpen(workload *costmodel.Workload) error {
	if !open(workload) {
		return nil
	}
	field, was := openField(workload)
	switch {
	case byBlock(workload):
		return nil
	case equalStages(workload) && workload.Strategy.Traits().Staged && workload.Mode == costmodel.Train:
		return nil
	case !openGrid(workload) && workload.Mode != costmodel.Train:
		return refuse(field, was, "what backward recomputes is chosen for training (%v has a backward)", costmodel.Set("mode", costmodel.Train))
	case !openGrid(workload) && !workload.Strategy.Traits().Staged:
		return refuse(field, was, "it is chosen for stages of a pipeline, and for blocks under FSDP (%v and %v have it)", costmodel.Set("strategy", costmodel.Pipeline), costmodel.Set("strategy", costmodel.FSDP))
	case !workload.Strategy.Traits().Staged || workload.Runtime != value.Torch:
		return refuse(field, was, "it is chosen for each stage of a pipeline (%v %v has them)", costmodel.Set("strategy", costmodel.Pipeline), costmodel.Set("runtime", value.Torch))
	case workload.Mode != costmodel.Train:
		return refuse(field, was, "what is chosen for each stage is chosen for training (%v has stages that keep activations and replicas that reduce)", costmodel.Set("mode", costmodel.Train))
	case workload.Schedule == costmodel.Interleaved:
		return refuse(field, was, "interleaved GPUs have several stages each, of one form (%v and %v work)", costmodel.Set("schedule", costmodel.OneFOneB), costmodel.Set("schedule", costmodel.GPipe))
	}
	return nil
}

// byBlock reports a training whose recomputed blocks are chosen one by one: devmap's pipelines, and
// torch's replicas.
func byBlock(workload *costmodel.Workload) bool {
	traits := workload.Strategy.Traits()
	one := workload.Runtime == costmodel.Devmap && traits.Staged || workload.Runtime == value.Torch && traits.Replicated
	return one && !openGrid(workload) && workload.Mode == costmodel.Train
}

// openField returns the first field that is open, and its value.
func openField(workload *costmodel.Workload) (name string, was any) {
	switch {
	case workload.DP == costmodel.AutoDegree:
		return "dp", workload.DP
	case workload.TP == costmodel.AutoDegree:
		return "tp", workload.TP
	}
	return "recompute", workload.Recompute
}

// checkDegrees refuses degrees that do not multiply out to the GPUs, and what
// stages of several GPUs are not modelled with.
func checkDegrees(workload *costmodel.Workload) error {
	if err := cmp.Or(checkUniform(workload), checkOpen(workload), checkGrid(workload)); err != nil {
		return err
	}
	if !spread(workload) || equalStages(workload) {
		return nil
	}
	field, degree := "dp", workload.DP
	if degree == 0 {
		field, degree = "tp", workload.TP
	}
	switch traits := workload.Strategy.Traits(); {
	case !traits.Staged:
		return refuse(field, degree, "stages of several GPUs are a pipeline's, and %v has none (%v does; zero, fsdp and hsdp have %v)",
			costmodel.Set("strategy", workload.Strategy), costmodel.Set("strategy", costmodel.Pipeline), costmodel.Setting{Field: "shard_degree"})
	case workload.Runtime != value.Torch:
		return refuse(field, degree, "a stage of %s is one GPU (%v takes several)", workload.Runtime, costmodel.Set("runtime", value.Torch))
	case workload.LoRARank > 0 || workload.Quantize != "":
		return refuse(field, degree, "adapters and quantised weights are not modelled on stages of several GPUs (full training is)")
	case ops.MixedPrecision(workload.Precision):
		return refuse("precision", workload.Precision, "mixed precision is not modelled on stages of several GPUs (%v, %v and %v are)",
			costmodel.BF16True, costmodel.FP16True, costmodel.FP32True)
	}
	if err := checkReplicas(workload); err != nil {
		return err
	}
	return checkProduct(workload)
}

// checkUniform refuses equal stages under a strategy without stages.
func checkUniform(workload *costmodel.Workload) error {
	if !workload.Uniform || workload.Strategy.Traits().Staged {
		return nil
	}
	return refuse("uniform", true, "%v has no stages (%v does)", costmodel.Set("strategy", workload.Strategy), costmodel.Set("strategy", costmodel.Pipeline))
}

// checkReplicas refuses what replicas of a stage are not modelled with.
func checkReplicas(workload *costmodel.Workload) error {
	switch replicas := workload.DP.Count(); {
	case workload.DP == 0:
	case workload.Mode == costmodel.Infer:
		return refuse("dp", workload.DP, "in inference each replica serves requests of its own: plan one of them, and run it %v times (%v works)", workload.DP, costmodel.Set("dp", 1))
	case workload.Schedule == costmodel.Interleaved:
		return refuse("dp", workload.DP, "what torch's interleaved runtime gathers and drops between runs is not modelled (%v and %v work)",
			costmodel.Set("schedule", costmodel.OneFOneB), costmodel.Set("schedule", costmodel.GPipe))
	case replicas > 1 && (workload.ShardDegree < 1 || replicas%workload.ShardDegree != 0):
		return refuse("shard_degree", workload.ShardDegree, "%d does not divide the %d replicas of a stage (%s)", workload.ShardDegree, replicas, value.NearestDivisors(workload.ShardDegree, replicas, nil))
	}
	return nil
}

// checkProduct refuses degrees with a product that does not divide the number of GPUs.
func checkProduct(workload *costmodel.Workload) error {
	dp, tp, gpus := workload.DP.Count(), workload.TP.Count(), workload.World
	if gpus < 1 || gpus%(dp*tp) == 0 {
		return nil
	}
	field, other, degree, rest := "tp", "dp", tp, dp
	if gpus%tp == 0 {
		field, other, degree, rest = "dp", "tp", dp, tp
	}
	works := ""
	if gpus%rest == 0 {
		works = fmt.Sprintf("; of %s, %s", field, value.NearestDivisors(degree, gpus/rest, nil))
	}
	return refuse(field, degree, "stages of %d × %d GPUs do not fill %d GPUs: the product must divide them%s (with %v)",
		dp, tp, gpus, works, costmodel.Set(other, rest))
}

// checkTensors refuses a degree of tensor parallelism that a model's matrices
// cannot be cut by, and operations that are not cut here.
func checkTensors(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	degree := workload.TP.Count()
	if degree == 1 {
		return nil
	}
	for i := range graph.Layers {
		if workload.Runtime == value.Megatron {
			break // its layers are its own, whatever the form of a checkpoint
		}
		if _, experts := graph.Layers[i].Op.(modelgraph.MoE); experts && workload.Runtime == value.Torchtitan && workload.EP.Count() > 1 {
			continue // each GPU has its experts whole
		}
		if why := layers.Uncut(graph, i); why != "" {
			return refuse("tp", degree, "layer %q is %s, which is not modelled under tensor parallelism (%v works)", graph.Layers[i].Name, why, costmodel.Set("tp", 1))
		}
	}
	divides := func(degree int64) bool {
		for i := range graph.Layers {
			if name, _ := undivided(graph.Layers[i].Op, degree, workload); name != "" {
				return false
			}
		}
		return true
	}
	for i := range graph.Layers {
		name, size := undivided(graph.Layers[i].Op, degree, workload)
		if name == "" {
			continue
		}
		return refuse("tp", degree, "layer %q has %d %s, which %d GPUs cannot share out evenly (%s)", graph.Layers[i].Name, size, name, degree,
			cmp.Or(value.NearestDivisors(degree, size, divides), "1 does"))
	}
	return nil
}

// undivided names a side of an operation that a degree does not divide.
func undivided(op modelgraph.Op, degree int64, workload *costmodel.Workload) (name string, size int64) {
	type side struct {
		name string
		size int64
	}
	var sides []side
	switch op := op.(type) {
	case modelgraph.Attention:
		sides = []side{{"attention heads", op.Heads}, {"KV heads", op.KVHeads}}
	case modelgraph.MLP:
		sides = []side{{"hidden features (the FFN's width)", op.Hidden}}
	case modelgraph.MoE:
		sides = []side{{"hidden features of shared experts", op.SharedHidden}}
	case modelgraph.Embedding:
		sides = []side{{"rows (the vocabulary)", op.Vocab}}
	case modelgraph.Head:
		sides = []side{{"logits (the vocabulary)", op.Vocab}}
	}
	for _, one := range sides {
		if strings.Contains(one.name, "vocabulary") && workload.Runtime == value.Megatron {
			continue // it is padded
		}
		if one.size%degree != 0 {
			return one.name, one.size
		}
	}
	return "", 0
}

// checkSpread refuses models and workloads that stages of several GPUs do not support.
func checkSpread(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	if !spread(workload) {
		return nil
	}
	field, degree := "tp", workload.TP
	if degree == 0 {
		field, degree = "dp", workload.DP
	}
	for i := range graph.Layers {
		if graph.Layers[i].Declared != nil {
			return refuse(field, degree, "the costs of layer %q are declared in the model file, and say nothing of a part of it (describe the operations)", graph.Layers[i].Name)
		}
	}
	return cmp.Or(checkExperts(graph, workload), checkTensors(graph, workload))
}
