package recipe

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// unknown is the error that an operation has no kernels.
func (parser *parser) unknown(layer *modelgraph.Layer) error {
	what := map[string]string{
		"MoE":        "it is a mixture of experts; the nearest that it runs is a dense feed-forward network (mlp)",
		"StateSpace": "it is a state-space mixer; the nearest that it runs is attention with a window",
		"Conv":       "it is a convolution; it runs language models, which embed tokens",
		"Parameter":  "it is a bare parameter, and nothing says what reads it; it runs embeddings, norms, attention, feed-forward networks and heads",
		"Opaque":     "nothing says what it computes; a model.json says so with an op: embedding, norm, attention, mlp, head",
	}[strings.TrimPrefix(fmt.Sprintf("%T", layer.Op), "modelgraph.")]
	if what == "" {
		what = fmt.Sprintf("it has no kernels for a %T", layer.Op)
	}
	return unrunnable(layer, "%s", what)
}

// notAChain is the error that a layer reads something else than the stream.
func (parser *parser) notAChain(index int) error {
	parser.loose = true
	layer, stream := &parser.graph.Layers[index], "the tokens"
	if parser.stream >= 0 {
		stream = fmt.Sprintf("%q", parser.graph.Layers[parser.stream].Name)
	}
	reads := make([]string, 0, 2)
	for _, j := range parser.inputs(index) {
		reads = append(reads, fmt.Sprintf("%q", parser.graph.Layers[j].Name))
	}
	if len(reads) == 0 {
		reads = append(reads, "nothing")
	}
	switch layer.Op.(type) {
	case modelgraph.Attention, modelgraph.MLP:
		if len(reads) == 1 {
			return unrunnable(layer, "its result is not added to the hidden stream (inputs: what it reads, then the layer that it is added to)")
		}
	}
	return unrunnable(layer, "it reads %s where the hidden stream is %s; it runs chains: every layer reads the stream, or attention and feed-forward a norm of it, and is added to it",
		strings.Join(reads, " and "), stream)
}

// onStream refuses layers on tokens other than the text's, and those that run repeatedly.
func (parser *parser) onStream(layer *modelgraph.Layer) error {
	if layer.Repeat > 1 {
		return unrunnable(layer, "it runs %d times in one forward; it runs chains, every layer once", layer.Repeat)
	}
	switch layer.Stream.Kind {
	case modelgraph.Text:
		return nil
	case modelgraph.Target:
		return unrunnable(layer, "it is an encoder–decoder's; the nearest that it runs is a decoder alone")
	}
	return unrunnable(layer, "it works on another kind of tokens than text (stream %q); it runs language models, which embed text", layer.Stream.Kind)
}

// attends refuses attention that no kernel computes.
func (model *model) attends(layer int) error {
	at := &model.graph.Layers[layer]
	op, ok := at.Op.(modelgraph.Attention)
	switch {
	case !ok:
		return nil
	case op.KVRank > 0:
		return unrunnable(at, "it is multi-head latent attention; the nearest that it runs has keys and values of its own (grouped queries)")
	case op.Cross:
		return unrunnable(at, "it attends to an encoder; the nearest that it runs is self-attention")
	case op.ScoreBias != "" || op.Eager && !op.SoftCap:
		bias := op.ScoreBias
		if bias == "" {
			bias = "score bias"
		}
		return unrunnable(at, "it adds a bias to the scores (%s); it runs rotary positions and tables of positions", bias)
	case op.ValueDim != 0 && op.ValueDim != op.HeadDim:
		return unrunnable(at, "its values are %d wide and its keys %d; it runs heads of one width", op.ValueDim, op.HeadDim)
	case op.QKNormWhole || op.QKNorm == modelgraph.LayerNorm:
		return unrunnable(at, "it norms q and k over all heads at once, or by LayerNorm; it runs RMSNorm of each head")
	case op.LayerScale:
		return unrunnable(at, "its result is multiplied by a learned vector (layer scale); it runs branches that are added as they are")
	}
	if err := attendsTo(at, &op); err != nil {
		return err
	}
	return model.attendsHow(at, &op)
}

// attendsTo refuses what attention reads, and is scaled by, that no kernel takes.
func attendsTo(at *modelgraph.Layer, op *modelgraph.Attention) error {
	switch {
	case op.InDim != 0 && op.InDim != op.Dim:
		return unrunnable(at, "it reads %d elements a token and gives %d; it runs attention of one width", op.InDim, op.Dim)
	case op.SharedKV:
		return unrunnable(at, "its keys and values are an earlier layer's; it runs layers that make their own")
	case op.IndexHeads > 0:
		return unrunnable(at, "an indexer says which keys a query sees; it runs windows")
	case op.Gated:
		return unrunnable(at, "its heads are scaled by a gate; it runs branches that are added as they are")
	case op.Packed:
		return unrunnable(at, "its tokens are images packed in one row; it runs sequences of one length")
	}
	return nil
}

// attendsHow refuses masks, caches and rotations that the kernels lack.
func (model *model) attendsHow(at *modelgraph.Layer, op *modelgraph.Attention) error {
	switch {
	case op.KVHeads == 0 || op.Heads%op.KVHeads != 0:
		return unrunnable(at, "its %d heads are no multiple of %d KV heads", op.Heads, op.KVHeads)
	case op.SoftCap && op.Eager && op.ScoreCap == 0:
		return unrunnable(at, "nothing says the cap of its scores (score_cap)")
	case op.Bidirectional && op.Window > 0:
		return unrunnable(at, "it looks %d tokens back and ahead; it runs windows that look back", op.Window)
	case op.Bidirectional && model.train:
		return refuse("mode", costmodel.Train, "layer %q sees later tokens, and devmap's engine trains models that predict the next; %v runs it", at.Name, costmodel.Set("mode", costmodel.Infer))
	case op.Bidirectional && model.generates:
		return refuse("new_tokens", model.workload.NewTokens, "layer %q sees later tokens and has no cache; %v runs it once", at.Name, costmodel.Set("new_tokens", 0))
	}
	return nil
}

// turns refuses rotations of q and k that nothing says how to make.
func (model *model) turns(layer int, op *modelgraph.Attention) error {
	if !op.Rope {
		return nil
	}
	if _, _, err := op.Frequencies(model.seq + model.workload.NewTokens); err != nil {
		return unrunnable(&model.graph.Layers[layer], "%v", err)
	}
	return nil
}

// heads refuses heads of other models than language models.
func (model *model) heads(layer int, op *modelgraph.Head) error {
	at := &model.graph.Layers[layer]
	switch {
	case op.SoftCap && op.LogitCap == 0:
		return unrunnable(at, "nothing says the cap of its logits (logit_cap)")
	case op.Pooled:
		return unrunnable(at, "it classifies one token a sequence, and nothing says which; it runs heads over every token")
	case model.train && (strings.Contains(model.graph.Class, "Classification") || strings.Contains(model.graph.Class, "QuestionAnswering")):
		return refuse("mode", costmodel.Train, "%s has a loss of its own; devmap's engine trains models that predict the next token (ForCausalLM), and runs this one with %v", model.graph.Class, costmodel.Set("mode", costmodel.Infer))
	}
	return nil
}

// indexes refuses rows that are not there, or that nothing says how to scale.
func (model *model) indexes(layer int, op *modelgraph.Embedding) error {
	at, length := &model.graph.Layers[layer], model.seq+model.workload.NewTokens
	switch {
	case op.Scaled && op.Factor == 0:
		return unrunnable(at, "nothing says what its rows are multiplied by (factor)")
	case op.Index == modelgraph.PositionIndex && length > op.Vocab && model.generates:
		return refuse("seq", model.seq, "layer %q has %d positions, and %d tokens with %d new ones are more; at most %d are left for the prompt",
			at.Name, op.Vocab, model.seq, model.workload.NewTokens, max(0, op.Vocab-model.workload.NewTokens))
	case op.Index == modelgraph.PositionIndex && length > op.Vocab:
		return refuse("seq", model.seq, "layer %q has %d positions; %v is the longest", at.Name, op.Vocab, costmodel.Set("seq", op.Vocab))
	}
	return nil
}

// ends refuses a chain that does not end in one head (for loss or logits) or in a pooler.
func (parser *parser) ends() error {
	if parser.stream >= 0 {
		if _, head := parser.graph.Layers[parser.stream].Op.(modelgraph.Head); head || parser.pools(parser.stream) {
			return nil
		}
		return unrunnable(&parser.graph.Layers[parser.stream], "the model ends with it; it runs models that end in a head over the vocabulary (ForCausalLM, ForMaskedLM) or in BERT's pooler")
	}
	return refuse("runtime", costmodel.Devmap, "devmap's engine cannot run model %q: nothing in it embeds tokens", parser.graph.Name)
}
