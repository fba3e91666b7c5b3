package layers

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// New computes every layer. Sizes that would overflow are a [*costmodel.FieldError].
func New(graph *modelgraph.Graph, workload costmodel.Workload, rules Rules) (*Model, error) {
	if rules.AutocastAdapters && storesFP32(graph) { // autocast casts the base, too
		rules.Compute, rules.AutocastAdapters = workload.Precision, false
	}
	tied := graph
	if rules.Untied {
		graph = untied(graph)
	}
	switch degree := workload.TP.Count(); {
	case rules.Megatron:
		graph = ofMegatron(graph, &workload)
	case degree > 1:
		graph = narrowed(graph, degree)
	}
	graph = ofTitan(graph, &workload)
	model := &Model{
		Graph: graph, Tied: tied, Workload: workload, Rules: rules, Layers: make([]Layer, len(graph.Layers)),
		Train: workload.Mode == costmodel.Train, Frozen: workload.LoRARank > 0,
		Optimizer: Optimizer{Kind: workload.Optimizer, EMA: workload.EMA, Embeddings32: trainer.Of(workload.Preset).Path.Embeddings32},
	}
	if err := findRecomputed(model); err != nil {
		return nil, err
	}
	if rules.Masters {
		model.Optimizer.Average = ops.WeightBytes(rules.Compute)
	}
	for i := range model.Layers {
		layer := &model.Layers[i]
		layer.Layer = &graph.Layers[i]
		tokens, _ := tokensOf(&workload, layer.Stream)
		layer.Runs = tokens > 0
		model.parts(i)
	}
	if model.Train {
		model.gradients()
	}
	if workload.Mode == costmodel.Load {
		return model, nil // bounded by modelgraph.New
	}
	return costs(model)
}

// findRecomputed finds the units that run again in backward.
func findRecomputed(model *Model) error {
	model.again = make([]bool, max(1, len(model.Graph.Units)))
	if model.Workload.Recompute == value.RecomputeSelective && model.Rules.Megatron { // of attention's core alone
		return nil
	}
	var blocks []int
	for unit := range model.Graph.Units {
		if len(model.Graph.Units[unit].Exec) > 1 {
			blocks = append(blocks, unit)
		}
	}
	count := len(blocks)
	if !model.Workload.ListsRecomputed() {
		count = max(1, count) // a model without blocks counts as one
	}
	again, err := model.Workload.Recomputed(count)
	if err != nil {
		return err
	}
	at := 0
	for unit := range model.again { // a unit between blocks is as the block before
		if at+1 < len(blocks) && unit >= blocks[at+1] {
			at++
		}
		model.again[unit] = again[at]
		model.Recomputes = model.Recomputes || model.again[unit]
	}
	return nil
}

// costs computes what every layer takes in a step.
func costs(model *Model) (*Model, error) {
	model.shapes()
	if err := model.bound(); err != nil {
		return nil, err
	}
	_, followed := model.Followed()
	for i := range model.Layers {
		model.Layers[i].Shape.Followed = followed
		model.Layers[i].cost()
		gathersInput(model, i, &model.Layers[i].Cost)
	}
	for i := range model.Layers { // backward comes to the norm when it comes to the table
		if table := tableBefore(model, i); table >= 0 && model.Train {
			from, to := &model.Layers[i].Cost.Memory, &model.Layers[table].Cost.Memory
			to.Saved, to.Forward, from.Saved = to.Saved+from.Saved, to.Forward+from.Saved, 0
		}
	}
	model.holdMasks()
	return model, nil
}

// storesFP32 reports a model stored in 32 bits.
func storesFP32(graph *modelgraph.Graph) bool {
	var half, full int64
	for i := range graph.Layers {
		for _, tensor := range graph.Layers[i].Owned() {
			if tensor.DType == modelgraph.F32 {
				full += tensor.Bytes
			} else {
				half += tensor.Bytes
			}
		}
	}
	return full > half
}

// untied is the graph with tied parameters copied for every user, with gradients and states each.
func untied(graph *modelgraph.Graph) *modelgraph.Graph {
	out := copied(graph)
	for i := range out.Layers {
		layer := &out.Layers[i]
		for j := range layer.Params {
			layer.Params[j].Owner = ""
		}
	}
	return out
}
