package layers

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// paddedTo times tp divides the vocabulary (arguments.py, make_vocab_size_divisible_by).
const paddedTo = 128

// ofMegatron is the graph of one GPU of Megatron-Core: its heads, its feed-forward features, its
// experts, and its rows of the padded vocabulary (core/tensor_parallel/layers.py). Both degrees
// split experts (expert_tensor_parallel_size defaults to that of other layers).
func ofMegatron(graph *modelgraph.Graph, workload *costmodel.Workload) *modelgraph.Graph {
	tensor, expert, vocab := workload.TP.Count(), workload.EP.Count(), vocabulary(graph)
	out := copied(graph)
	for i := range out.Layers {
		layer := &out.Layers[i]
		columns := make(map[int]bool)
		_, embeds := layer.Op.(modelgraph.Embedding)
		for _, projection := range Projections(graph, i) {
			columns[projection.Param] = projection.Output
		}
		for j := range layer.Params {
			param := &layer.Params[j]
			output, matrix := columns[j]
			switch {
			case tableOf(layer.Op, vocab):
				padRows(param, workload)
				narrow(param, 0, tensor)
			case Routed(layer.Op, param.Shape):
				narrow(param, 0, expert)
				narrow(param, 1, tensor)
			case matrix && strings.Contains(param.Name, "_a_proj"): // down to a latent: whole (parallel_mode duplicated)
			case matrix:
				axis := 0
				if output != (graph.Family == "gpt2") { // whose matrices are transposed, as [Projections] has it
					axis = 1
				}
				narrow(param, axis, tensor)
			case !embeds && cutWithWeight(graph, i, j, columns):
				narrow(param, 0, tensor)
			}
		}
		layer.Op = narrowMegatron(layer.Op, workload, vocab)
	}
	return out
}

// ofTitan leaves a GPU its experts, whole under tensor parallelism (torchtitan 0.3,
// models/common/moe_sharding.py, expert_param_placement_sparse).
func ofTitan(graph *modelgraph.Graph, workload *costmodel.Workload) *modelgraph.Graph {
	if workload.Runtime != value.Torchtitan || workload.EP.Count() == 1 {
		return graph
	}
	out := copied(graph)
	for i := range out.Layers {
		layer := &out.Layers[i]
		for j := range layer.Params {
			if Routed(layer.Op, layer.Params[j].Shape) {
				narrow(&layer.Params[j], 0, workload.EP.Count())
			}
		}
	}
	return out
}

// Degree is the number of FSDP2 shards of parameter j. torchtitan shards experts over the GPUs with
// the same ones (distributed/parallel_dims.py, build_mesh: efsdp).
func (part *Part) Degree(j int) int64 {
	workload := &part.model.Workload
	if workload.Runtime != value.Torchtitan || !Routed(part.Op, part.Params[j].Shape) {
		return workload.ShardDegree
	}
	return max(1, workload.ShardDegree*workload.TP.Count()/workload.EP.Count())
}

// byColumns reports experts that are fewer than GPUs, so FSDP2 shards their second dimension
// (distributed/fsdp.py, apply_fsdp_to_decoder: expert_shard_placement).
func (part *Part) byColumns(j int) bool {
	op, _ := part.Op.(modelgraph.MoE)
	return part.model.Workload.Runtime == value.Torchtitan && Routed(part.Op, part.Params[j].Shape) && part.Degree(j)*part.model.Workload.EP.Count() > op.Experts
}

// Routed reports a weight of experts, which are stacked.
func Routed(op modelgraph.Op, shape []int64) bool {
	_, experts := op.(modelgraph.MoE)
	return experts && len(shape) > 2
}

// vocabulary is the number of tokens that the model has logits for, or -1.
func vocabulary(graph *modelgraph.Graph) int64 {
	for i := range graph.Layers {
		if head, ok := graph.Layers[i].Op.(modelgraph.Head); ok {
			return head.Vocab
		}
	}
	return -1
}

// tableOf reports an embedding or a head of the vocabulary; a table of positions is whole on every GPU.
func tableOf(op modelgraph.Op, vocab int64) bool {
	switch op := op.(type) {
	case modelgraph.Embedding:
		return op.Vocab == vocab
	case modelgraph.Head:
		return true
	}
	return false
}

// padRows gives a table of the vocabulary its padding.
func padRows(param *modelgraph.Tensor, workload *costmodel.Workload) {
	shape := slices.Clone(param.Shape)
	shape[0] = padded(shape[0], workload)
	wide, err := modelgraph.NewTensor(param.Name, param.DType, shape...)
	if err != nil { // at most 128 rows more for each GPU
		return
	}
	wide.Owner = param.Owner
	*param = wide
}

func padded(vocab int64, workload *costmodel.Workload) int64 {
	if workload.Preset != "" {
		return vocab // ms-swift's bridge pads to the degree alone
	}
	unit := paddedTo * workload.TP.Count()
	return (vocab + unit - 1) / unit * unit
}

// narrowMegatron is an op with the dimensions of one GPU.
func narrowMegatron(op modelgraph.Op, workload *costmodel.Workload, vocab int64) modelgraph.Op {
	tensor := workload.TP.Count()
	switch op := op.(type) {
	case modelgraph.Embedding:
		if op.Vocab == vocab {
			op.Vocab = padded(op.Vocab, workload) / tensor
		}
		return op
	case modelgraph.Head:
		op.Vocab = padded(op.Vocab, workload) / tensor
		return op
	case modelgraph.Attention:
		op.Heads, op.KVHeads = op.Heads/tensor, max(1, op.KVHeads/tensor)
		return op
	case modelgraph.MoE:
		op.Hidden, op.SharedHidden = op.Hidden/tensor, op.SharedHidden/tensor
		return op
	}
	return narrowOp(op, tensor)
}

// cutTokens says in a shape over how many GPUs tokens are cut. Experts get the tokens
// of all GPUs that share their layer: the mean, or the busiest GPU's.
func cutTokens(shape *ops.Shape, op modelgraph.Op, workload *costmodel.Workload) {
	context := workload.CP.Count()
	shape.Sequence = 1
	if workload.Runtime == value.Torchtitan {
		shape.Context, shape.Tensor = context, workload.TP.Count()
	}
	shape.Tokens, shape.Logits = (shape.Tokens+context-1)/context, (shape.Logits+context-1)/context
	if workload.SequenceParallel {
		shape.Sequence = workload.TP.Count()
	}
	experts, ok := op.(modelgraph.MoE)
	if _, norm := op.(modelgraph.Norm); (norm || ok) && workload.Runtime == value.Torchtitan {
		shape.Tokens = (shape.Tokens + workload.TP.Count() - 1) / workload.TP.Count()
	}
	shape.Dispatched = ok && workload.EP.Count() > 1
	if ok && workload.Strategy.Traits().Staged && !experts.Clamped && !experts.Dense {
		shape.Routed = shape.Tokens * experts.TopK
		if workload.ExpertCapacity > 0 {
			shape.Routed = int64(workload.ExpertCapacity * float64(shape.Routed))
		}
	}
}

// exchanges are a layer's bytes to GPUs with other tokens of its sequences, and to those with other
// experts. Keys, values and their gradients go round a ring (TransformerEngine,
// context_parallel.py, cp_comm_type p2p).
func exchanges(model *Model, layer *Layer, forward, backward *costmodel.Pass) {
	workload, shape := &model.Workload, &layer.Shape
	switch op := layer.Op.(type) {
	case modelgraph.Attention:
		if context := workload.CP.Count(); context > 1 {
			ring := float64(context-1) * float64(2*2*op.KVHeads*op.HeadDim*shape.Tokens)
			forward.Shared, backward.Shared = ring, 2*ring
		}
	case modelgraph.MoE:
		if experts := workload.EP.Count(); experts > 1 {
			sent := float64(2*op.Dim) * float64(shape.Routed) * float64(experts-1) / float64(experts)
			if workload.Runtime != value.Torchtitan { // whose tokens are cut already
				sent /= float64(workload.TP.Count())
			}
			forward.Dispatched, backward.Dispatched = 2*sent, 2*sent
			if model.again[layer.UnitIndex] {
				backward.Dispatched *= 2 // they are sent again
			}
		}
	}
	if !model.Train {
		backward.Shared, backward.Dispatched = 0, 0
	}
}

// titanStages reports a pipeline of torchtitan's modules.
func titanStages(model *Model) bool {
	return model.Rules.Modules == ops.Torchtitan && model.Workload.Strategy.Traits().Staged
}

// gathersInput adds what torchtitan's tensor parallelism keeps: products read the whole sequence,
// gathered from its parts, and pass on a part (models/llama3/parallelize.py: PrepareModuleInput,
// RowwiseParallel with Shard(1)).
func gathersInput(model *Model, i int, cost *ops.Cost) {
	degree := model.Workload.TP.Count()
	if degree == 1 || !titanStages(model) {
		return
	}
	var width int64
	switch op := model.Layers[i].Op.(type) {
	case modelgraph.Attention:
		width = op.Dim
	case modelgraph.MLP:
		width = op.Dim
	case modelgraph.Embedding:
		cost.Output /= degree
	case modelgraph.Head:
		width = op.Dim
	}
	if width == 0 || !model.Train {
		return
	}
	whole := ops.ComputeBytes(model.Layers[i].Shape.Precision) * width * model.Layers[i].Shape.Tokens
	cost.Memory.Saved += whole - whole/degree
	cost.Memory.Forward += whole - whole/degree
	if _, head := model.Layers[i].Op.(modelgraph.Head); !head {
		cost.Output /= degree
	}
}
