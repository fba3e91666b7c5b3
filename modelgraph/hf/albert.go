package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types: []string{"albert"}, table: true, class: "AlbertForMaskedLM",
		classes: []string{
			"AlbertForMaskedLM", "AlbertModel", "AlbertForPreTraining", "AlbertForSequenceClassification", "AlbertForMultipleChoice",
			"AlbertForTokenClassification", "AlbertForQuestionAnswering",
		},
		build: albert,
		// Fields of the code that trained the first checkpoints; no class reads them.
		unread: []string{"down_scale_factor", "gap_size", "net_structure_type", "num_memory_blocks"},
	})
}

// albert is modeling_albert.py: groups of layers that run several times, with narrower embeddings.
func albert(modules *builder, cfg *config, class string) {
	model := narrowBERT(cfg)
	modules.epsilon = model.epsilon
	path := "albert"
	if baseClass(class) {
		path = ""
	}
	model.tables(modules, dot(path, "embeddings"), true)
	modules.hidden = addLinear(modules, dot(path, "encoder.embedding_hidden_mapping_in"), model.width, model.hidden, "", modules.hidden)
	inner, groups := cfg.count(0, "inner_group_num"), cfg.count(0, "num_hidden_groups")
	if inner*groups > maxLayers {
		cfg.fail("inner_group_num", "%d groups of %d layers are more than %d", groups, inner, maxLayers)
		return
	}
	for group, runs := range albertRuns(cfg, model.layers, groups) {
		name := indexed(dot(path, "encoder.albert_layer_groups"), int64(group))
		from := len(modules.layers)
		modules.unit(name, func() {
			for i := range inner {
				model.albertLayer(modules, indexed(dot(name, "albert_layers"), i))
			}
		})
		for i := range modules.layers[from:] {
			modules.layers[from+i].Repeat = runs
		}
	}
	pooled := ""
	switch class {
	case "AlbertModel", "AlbertForPreTraining", "AlbertForSequenceClassification", "AlbertForMultipleChoice":
		op := modelgraph.Linear{In: model.hidden, Out: model.hidden, Activation: "tanh", Pooled: true}
		pooled = modules.add(dot(path, "pooler"), op, []string{modules.hidden}, linearParams("", model.hidden, model.hidden, true)...).Name
		modules.empty(dot(path, "pooler_activation"))
	}
	switch class {
	case "AlbertForMaskedLM":
		model.albertHead(modules)
	case "AlbertForPreTraining":
		model.albertHead(modules)
		addClassHead(modules, "sop_classifier.classifier", model.hidden, cfg.labels(), true, pooled)
	default:
		model.taskHead(modules, cfg, class[len("Albert"):], pooled)
	}
}

// albertRuns counts each group's runs (AlbertTransformer): layer i is of group i·groups/layers.
func albertRuns(cfg *config, layers, groups int64) []int64 {
	if groups < 1 || groups > layers {
		cfg.fail("num_hidden_groups", "%d is not a number of groups from 1 to the %d layers", groups, layers)
		return nil
	}
	runs := make([]int64, groups)
	for i := range layers {
		runs[min(groups-1, int64(float64(i)/(float64(layers)/float64(groups))))]++
	}
	return runs
}

// albertLayer is AlbertLayer, whose last norm comes first.
func (model *narrow) albertLayer(modules *builder, name string) {
	hidden, attention, last := model.hidden, dot(name, "attention"), dot(name, "full_layer_layer_norm")
	addLayerNorm(modules, last, hidden, name)
	modules.add(attention, model.attention, []string{modules.hidden, modules.hidden}, join(
		linearParams("query", hidden, hidden, true), linearParams("key", hidden, hidden, true),
		linearParams("value", hidden, hidden, true), linearParams("dense", hidden, hidden, true))...)
	normed := addLayerNorm(modules, dot(attention, "LayerNorm"), hidden, attention)
	op := model.mlp
	op.Dropout = false // ff_chunk has none
	modules.add(name, op, []string{normed, normed}, join(
		linearParams("ffn", hidden, op.Hidden, true), linearParams("ffn_output", op.Hidden, hidden, true))...)
	modules.hidden = last
}

// albertHead is AlbertMLMHead, as wide as the embeddings.
func (model *narrow) albertHead(modules *builder) {
	const name = "predictions"
	modules.add(dot(name, "bias"), modelgraph.Opaque{}, nil, tensor("", model.vocab))
	norm, dense, decoder := dot(name, "LayerNorm"), dot(name, "dense"), dot(name, "decoder")
	addLayerNorm(modules, norm, model.width, dense)
	addLinear(modules, dense, model.hidden, model.width, model.mlp.Activation, modules.hidden)
	addClassHead(modules, decoder, model.width, model.vocab, false, norm)
	modules.layers[len(modules.layers)-1].Op = modelgraph.Head{Dim: model.width, Vocab: model.vocab, OwnType: true, Body: model.hidden}
	if model.tied {
		modules.tie("albert.embeddings.word_embeddings.weight", dot(decoder, "weight"))
		modules.tie(dot(name, "bias"), dot(decoder, "bias"))
	}
}
