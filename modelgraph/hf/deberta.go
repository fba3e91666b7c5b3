package hf

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	register(family{
		types: []string{"deberta-v2"}, table: true, class: "DebertaV2ForMaskedLM",
		classes: []string{
			"DebertaV2ForMaskedLM", "DebertaV2Model", "DebertaV2ForSequenceClassification", "DebertaV2ForMultipleChoice",
			"DebertaV2ForTokenClassification", "DebertaV2ForQuestionAnswering",
		},
		build:  func(modules *builder, cfg *config, class string) { readDeberta(cfg).build(modules, cfg, class) },
		unread: []string{"pooler_dropout", "pooler_hidden_act", "conv_act"},
	})
}

// deberta is configuration_deberta_v2.py: DebertaV2Config, and the attributes that the modules look
// for next to its fields.
type deberta struct {
	hidden, vocab, positions, types, layers int64

	attention  modelgraph.Attention
	mlp        modelgraph.MLP
	tied       bool
	biased     bool  // positions are added to the words
	width      int64 // of the embeddings
	rows       int64 // of the table of relative positions; 0: none
	keys       bool  // of projections of relative positions: for keys
	queries    bool  // and for queries
	tableNorm  bool
	kernel     int64 // of a convolution next to the first block; 0: none
	groups     int64
	headsWidth int64
}

func readDeberta(cfg *config) *deberta {
	hidden := cfg.pos(0, "hidden_size")
	model := &deberta{
		hidden: hidden, vocab: cfg.pos(0, "vocab_size"), positions: cfg.pos(0, "max_position_embeddings"), types: cfg.dim(0, "type_vocab_size"),
		layers: cfg.count(0, "num_hidden_layers"), attention: equalHeads(cfg, hidden, 0, "num_attention_heads"),
		mlp:  modelgraph.MLP{Dim: hidden, Hidden: cfg.pos(0, "intermediate_size"), Activation: cfg.str("", "hidden_act")},
		tied: cfg.bool(true, "tie_word_embeddings"),
	}
	if cfg.has("attention_head_size") {
		model.attention.HeadDim = cfg.pos(0, "attention_head_size")
	}
	model.attention.Eager, model.attention.OwnScores, model.attention.Unreturned = true, true, true // DisentangledSelfAttention is the only form
	model.attention.Bidirectional, model.attention.Dropout = true, cfg.float(0, "hidden_dropout_prob") > 0
	model.attention.InnerDropout = cfg.float(0, "attention_probs_dropout_prob") > 0
	model.mlp.Dropout = model.attention.Dropout
	model.headsWidth = cfg.product("attention_head_size", model.attention.Heads, model.attention.HeadDim)
	model.biased, model.width = cfg.bool(true, "position_biased_input"), cfg.pos(hidden, "embedding_size")
	if cfg.flag("relative_attention") {
		model.relative(cfg)
	}
	model.tableNorm = slices.ContainsFunc(strings.Split(strings.ToLower(cfg.name("norm_rel_ebd")), "|"), func(word string) bool { return strings.TrimSpace(word) == "layer_norm" })
	model.kernel, model.groups = cfg.dim(0, "conv_kernel_size"), cfg.pos(1, "conv_groups")
	return model
}

// relative reads the table of relative positions and who projects them (DisentangledSelfAttention).
func (model *deberta) relative(cfg *config) {
	model.attention.ScoreBias = "relative"
	span := cfg.float(-1, "max_relative_positions")
	model.rows = model.positions
	if span >= 1 {
		model.rows = int64(min(span, maxDim/2))
	}
	if buckets := cfg.float(-1, "position_buckets"); buckets > 0 {
		model.rows = int64(min(buckets, maxDim/2))
	}
	model.rows *= 2
	if cfg.flag("share_att_key") || !cfg.has("pos_att_type") {
		return
	}
	var kinds []string
	if cfg.members["pos_att_type"].Kind() == '"' {
		kinds = strings.Split(strings.ToLower(cfg.str("", "pos_att_type")), "|")
	} else {
		kinds = cfg.strs("pos_att_type")
	}
	for _, kind := range kinds {
		model.keys = model.keys || strings.TrimSpace(kind) == "c2p"
		model.queries = model.queries || strings.TrimSpace(kind) == "p2c"
	}
}

// build adds the modules of a class (modeling_deberta_v2.py). None is no-split: blocks stay whole.
func (model *deberta) build(modules *builder, cfg *config, class string) {
	path := "deberta"
	if baseClass(class) {
		path = ""
	}
	model.embed(modules, dot(path, "embeddings"))
	model.encode(modules, dot(path, "encoder"))
	pooled := func() string {
		op := modelgraph.Linear{In: model.hidden, Out: model.hidden, Activation: "gelu", Pooled: true}
		width := cfg.pos(model.hidden, "pooler_hidden_size")
		op.In, op.Out = width, width
		return modules.add("pooler.dense", op, []string{modules.hidden}, linearParams("", width, width, true)...).Name
	}
	switch class {
	case "DebertaV2ForMaskedLM":
		if !cfg.bool(true, "legacy") {
			cfg.fail("legacy", "the newer head of a %s is not known here", class)
		}
		if model.width != model.hidden {
			cfg.fail("embedding_size", "%d is not hidden_size %d, which a head for every token needs here", model.width, model.hidden)
		}
		model.predictions(modules)
	case "DebertaV2ForSequenceClassification":
		addClassHead(modules, "classifier", cfg.pos(model.hidden, "pooler_hidden_size"), cfg.labels(), true, pooled())
	case "DebertaV2ForMultipleChoice":
		addClassHead(modules, "classifier", model.hidden, 1, true, pooled())
	case "DebertaV2ForTokenClassification":
		addClassHead(modules, "classifier", model.hidden, cfg.labels(), false, modules.hidden)
	case "DebertaV2ForQuestionAnswering":
		addClassHead(modules, "qa_outputs", model.hidden, cfg.labels(), false, modules.hidden)
	}
}

// embed is DebertaV2Embeddings.
func (model *deberta) embed(modules *builder, path string) {
	from := len(modules.layers)
	modules.add(dot(path, "position_ids"), modelgraph.Opaque{}, nil).Buffers = []modelgraph.Tensor{buffer("", int64Type, 1, model.positions)}
	modules.hidden = addTable(modules, dot(path, "word_embeddings"), model.vocab, model.width, "")
	if model.biased {
		modules.hidden = addRows(modules, dot(path, "position_embeddings"), modelgraph.Embedding{Vocab: model.positions, Dim: model.width, Index: modelgraph.PositionIndex}, modules.hidden)
	}
	if model.types > 0 {
		modules.hidden = addRows(modules, dot(path, "token_type_embeddings"), modelgraph.Embedding{Vocab: model.types, Dim: model.width, Index: modelgraph.TypeIndex}, modules.hidden)
	}
	if model.width != model.hidden {
		modules.hidden = modules.add(dot(path, "embed_proj"), modelgraph.Linear{In: model.width, Out: model.hidden}, []string{modules.hidden}, linearParams("", model.width, model.hidden, false)...).Name
	}
	modules.hidden = addLayerNorm(modules, dot(path, "LayerNorm"), model.hidden, modules.hidden)
	modules.persists(model.mlp.Dropout)
	modules.join(from) // rows are added, and the norm's result is multiplied by the mask, in DebertaV2Embeddings.forward
}

// encode is DebertaV2Encoder, whose table of relative positions follows the blocks that read it.
func (model *deberta) encode(modules *builder, path string) {
	table, embedded := "", modules.hidden
	if model.rows > 0 {
		table = dot(path, "rel_embeddings")
	}
	first := ""
	for i := range model.layers {
		name := indexed(dot(path, "layer"), i)
		modules.unit(name, func() { model.layer(modules, name, table) })
		if i == 0 && model.kernel > 0 { // the convolution's result is added to the first block's
			first, modules.hidden = modules.hidden, dot(path, "conv.LayerNorm")
		}
	}
	if table != "" {
		addTable(modules, table, model.rows, model.hidden, "")
	}
	if model.tableNorm {
		addLayerNorm(modules, dot(path, "LayerNorm"), model.hidden, table)
	}
	if model.kernel > 0 {
		conv := modules.add(dot(path, "conv.conv"), modelgraph.Conv{In: model.hidden, Out: model.hidden, Kernel: model.kernel, Activation: "tanh"}, []string{embedded, first},
			tensor("weight", model.hidden, max(1, model.hidden/model.groups), model.kernel), tensor("bias", model.hidden)).Name
		addLayerNorm(modules, dot(path, "conv.LayerNorm"), model.hidden, conv)
		modules.join(len(modules.layers)-2, modules.layers[0].Name, first) // ConvLayer.forward multiplies by the mask, which is on the first GPU, and adds the first block
	}
}

// layer is DebertaV2Layer: a BERT's, with other names and projections.
func (model *deberta) layer(modules *builder, name, table string) {
	attention := dot(name, "attention")
	params := join(linearParams("self.query_proj", model.hidden, model.headsWidth, true), linearParams("self.key_proj", model.hidden, model.headsWidth, true),
		linearParams("self.value_proj", model.hidden, model.headsWidth, true))
	if model.keys {
		params = append(params, linearParams("self.pos_key_proj", model.hidden, model.headsWidth, true)...)
	}
	if model.queries {
		params = append(params, linearParams("self.pos_query_proj", model.hidden, model.headsWidth, true)...)
	}
	params = append(params, linearParams("output.dense", model.headsWidth, model.hidden, true)...)
	modules.add(attention, model.attention, []string{modules.hidden, modules.hidden, table}, params...)
	modules.hidden = addLayerNorm(modules, dot(attention, "output.LayerNorm"), model.hidden, attention)
	modules.add(name, model.mlp, []string{modules.hidden, modules.hidden}, join(
		linearParams("intermediate.dense", model.hidden, model.mlp.Hidden, true),
		linearParams("output.dense", model.mlp.Hidden, model.hidden, true))...)
	modules.hidden = addLayerNorm(modules, dot(name, "output.LayerNorm"), model.hidden, name)
}

// predictions is a BERT's head for every token. Its bias is the decoder's under another name and
// does not run itself.
func (model *deberta) predictions(modules *builder) {
	const name, decoder = "cls.predictions", "cls.predictions.decoder"
	modules.add(dot(name, "bias"), modelgraph.Opaque{}, nil, tensor("", model.vocab))
	op := modelgraph.Linear{In: model.hidden, Out: model.hidden, Activation: model.mlp.Activation}
	dense := modules.add(dot(name, "transform.dense"), op, []string{modules.hidden}, linearParams("", model.hidden, model.hidden, true)...).Name
	modules.empty(dot(name, "transform.transform_act_fn"))
	addClassHead(modules, decoder, model.hidden, model.vocab, false, addLayerNorm(modules, dot(name, "transform.LayerNorm"), model.hidden, dense))
	if model.tied {
		modules.tie("deberta.embeddings.word_embeddings.weight", dot(decoder, "weight"))
		modules.tie(dot(name, "bias"), dot(decoder, "bias"))
	}
}
