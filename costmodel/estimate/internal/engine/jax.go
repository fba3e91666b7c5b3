package engine

import (
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/shard"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// JAXFraction is the part of a GPU that JAX preallocates, unless XLA_PYTHON_CLIENT_MEM_FRACTION
// sets another. It is a part of the total memory that CUDA reports: the capacity less the driver's
// part. NVML shows the pool and a context, not the program's bytes. Source: XLA,
// xla/pjrt/gpu/gpu_helpers.cc, CreateBFCAllocator, total_memory * memory_fraction.
const JAXFraction = 0.75

// jax is a training or a policy of OpenPI (Physical-Intelligence/openpi at 15a9616): one program
// that XLA compiles, on a mesh of all visible GPUs, (GPUs / fsdp_devices, fsdp_devices). Both axes
// split the batch; the second also splits large arrays of the train state (package shard, Axis).
// Every GPU has all else.
type jax struct{ base }

// Precision: arrays keep their own types. Compute is bf16 (Pi0Config.dtype).
func (jax) Precision(costmodel.Precision) (costmodel.Precision, bool) {
	return costmodel.FP32True, true
}

// Refuse names what OpenPI's training has not.
func (jax) Refuse(workload *costmodel.Workload) error {
	if err := checkDegree(workload); err != nil {
		return err
	}
	switch {
	case workload.MemFraction < 0 || workload.MemFraction > 1:
		return costmodel.Refuse(costmodel.Set("mem_fraction", workload.MemFraction), "%v is no part of a GPU's memory: it is between 0 and 1", workload.MemFraction)
	case !workload.StoredTypes:
		return costmodel.Refuse(costmodel.Set("precision", workload.Precision), "the arrays of a JAX model have types of their own: OpenPI trains fp32 and keeps what is frozen in bf16; leave it out")
	case workload.LoRARank > 0:
		return costmodel.Refuse(costmodel.Set("lora_rank", workload.LoRARank), "OpenPI's adapters are arrays of the model, of ranks that gemma.py fixes: plan pi0-lora or pi05-lora")
	case workload.Quantize != "":
		return costmodel.Refuse(costmodel.Set("quantize", workload.Quantize), "OpenPI quantises nothing")
	case workload.NewTokens > 0:
		return costmodel.Refuse(costmodel.Set("new_tokens", workload.NewTokens), "a policy makes actions, not tokens: leave it out")
	case workload.MicroBatches > 1:
		return costmodel.Refuse(costmodel.Set("micro_batches", workload.MicroBatches), "OpenPI has no gradient accumulation: %v works", costmodel.Set("micro_batches", 1))
	case workload.Mode == costmodel.Train && jaxStates[workload.Optimizer] == nil:
		return costmodel.Refuse(costmodel.Set("optimizer", workload.Optimizer), "OpenPI has optax' AdamW and SGD (training/optimizer.py): adamw, sgd and sgd-momentum work")
	}
	return nil
}

// jaxStates are what optax keeps: copies of each trained array in its type, and counters of 4
// bytes, and the step's own (ScaleByAdamState, ScaleByScheduleState, TraceState).
var jaxStates = map[string]*struct{ copies, counters int64 }{
	costmodel.AdamW:   {2, 3},
	costmodel.SGD:     {0, 2},
	value.SGDMomentum: {1, 2},
}

// tree is what one GPU holds of a unit's arrays, in bytes.
type tree struct{ params, trained, states, served int64 }

// treeOf adds up the arrays of the layers of a unit that keep says.
func treeOf(model *layers.Model, index int, keep func(name string) bool) tree {
	var sum tree
	workload, graph := &model.Workload, model.Graph
	for i := graph.Units[index].First; i < graph.Units[index].End; i++ {
		layer := &graph.Layers[i]
		for _, array := range layer.Owned() {
			if !keep(modelgraph.FullName(layer.Name, array.Name)) {
				continue
			}
			numel := shard.Numel(array, workload.ShardDegree)
			size := numel * array.Bytes / max(1, array.Numel)
			sum.params += size
			sum.served += 2 * array.Numel
			if workload.EMA { // ema_params: a copy of all, the frozen too (scripts/train.py)
				sum.states += size
			}
			if !array.Frozen && array.DType.Float() {
				sum.trained += size
				if states := jaxStates[workload.Optimizer]; states != nil {
					sum.states += states.copies * size
				}
			}
		}
		if bytes, ok := model.Layers[i].Whole.DeclaredBytes(); ok { // no array is known that could be cut
			sum.params, sum.served = sum.params+bytes, sum.served+bytes
			sum.trained += bytes
			if states := jaxStates[workload.Optimizer]; states != nil {
				sum.states += states.copies * bytes
			}
		}
	}
	return sum
}

func everyArray(string) bool { return true }

// Regions gives units what one GPU holds of their arrays: they had PyTorch's before. The rest of a
// step is the program's ([pi0Step]) if it is known, else declared by the model file.
func (engine jax) Regions(model *layers.Model, table *costmodel.Table) error {
	table.Workspaces, table.Pool = 0, model.Workload.MemFraction
	for index := range table.Units {
		unit, arrays := &table.Units[index], treeOf(model, index, everyArray)
		unit.Params, unit.OptimizerState, unit.Padding, unit.StepTransient = arrays.params, 0, 0, 0
		if model.Workload.Mode == costmodel.Infer { // policies are restored as bf16, whole (policies/policy_config.py)
			unit.Params = arrays.served
		}
		if model.Train {
			unit.OptimizerState = arrays.states
			plain(unit, arrays.trained)
		}
	}
	if model.Train && len(table.Units) > 0 {
		table.Units[0].OptimizerState += 4 * jaxStates[model.Workload.Optimizer].counters
	}
	if model.Workload.Mode == costmodel.Load {
		return nil
	}
	if step := pi0Of(model); step != nil {
		step.fill(table)
	} else {
		warn(table, "XLA's activations are unknown for this model: devmap counts declared or PyTorch ones; peaks may be %.0f%% lower or higher; the train state is exact", 100*jaxBand)
		table.Band = jaxBand
	}
	engine.situation(model, table)
	return nil
}

// jaxBand is the error of the peak of a program that no one has compiled.
const jaxBand = 0.25

// plain sets a unit's gradients to those of its own arrays, on one GPU.
func plain(unit *costmodel.Unit, trained int64) {
	unit.ResidentGrads = 0
	for k := range unit.Layers {
		step := &unit.Layers[k]
		step.Backward += -step.BackwardGrads
		step.BackwardGrads, step.Grads = 0, 0
		if k == 0 { // the last in backward
			step.BackwardGrads, step.Grads = trained, trained
			step.Backward += trained
		}
	}
}

// situation warns about the GPUs that JAX takes and its use of them.
func (jax) situation(model *layers.Model, table *costmodel.Table) {
	workload := &model.Workload
	pool := costmodel.Set("mem_fraction", workload.MemFraction)
	warn(table, "JAX preallocates %v of each visible GPU (XLA_PYTHON_CLIENT_MEM_FRACTION): nvidia-smi shows all of it; CUDA_VISIBLE_DEVICES selects the GPUs", pool)
	if workload.World > 1 && workload.ShardDegree == 1 && model.Train {
		warn(table, "with %v each of the %d GPUs holds the whole train state: OpenPI replicates it on every visible GPU; %v shards it over all", costmodel.Set("shard_degree", 1), workload.World, costmodel.Set("shard_degree", workload.World))
	}
	if model.Train && Program(model.Graph) && !workload.EMA && !frozenTree(model.Graph) {
		warn(table, "OpenPI's configs keep a moving average of the weights (ema_decay 0.99) but for LoRA: %v counts it", costmodel.Setting{Field: "ema"})
	}
	if Program(model.Graph) && model.Train && workload.Recompute != costmodel.RecomputeNone {
		warn(table, "%v changes nothing: OpenPI scans its blocks under remat in any case", costmodel.Set("recompute", workload.Recompute))
	}
	if workload.Mode == costmodel.Infer && workload.World > 1 {
		warn(table, "a policy runs on one GPU: JAX takes its pool on all %d, and the others stay idle", workload.World)
	}
}

// frozenTree reports a model with arrays that are not trained.
func frozenTree(graph *modelgraph.Graph) bool {
	for i := range graph.Layers {
		for _, array := range graph.Layers[i].Owned() {
			if array.Frozen {
				return true
			}
		}
	}
	return false
}

// tensorOf finds an array by its full name, nil if there is none.
func tensorOf(graph *modelgraph.Graph, name string) *modelgraph.Tensor {
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		if !strings.HasPrefix(name, layer.Name) {
			continue
		}
		for _, array := range layer.Owned() {
			if modelgraph.FullName(layer.Name, array.Name) == name {
				return array
			}
		}
	}
	return nil
}
