package forward

// joint are the sizes of a transformer with an image's and a text's stream.
type joint struct {
	batch, image, text int64 // tokens a sequence
	dim                int64
	shared             bool // each GPU has its part of the text
}

func (sizes joint) imageRows() int64 { return sizes.batch * sizes.image }
func (sizes joint) textRows() int64  { return sizes.batch * sizes.text }
func (sizes joint) rows() int64      { return sizes.batch * (sizes.image + sizes.text) }

// flux is FluxTransformer2DModel.forward (transformer_flux.py).
func flux(tape *tape, root module, call Call) {
	sizes := joint{batch: call.Batch, image: call.share(call.Tokens), text: call.ShareText(), dim: root.out("x_embedder")}
	inputs := []*value{
		tape.new(sizes.imageRows() * root.inward("x_embedder")), tape.new(sizes.textRows() * root.inward("context_embedder")),
		tape.new(sizes.batch * root.inward("time_text_embed.text_embedder.linear_1")), tape.new(sizes.batch),
		tape.new(sizes.image * 3), tape.new(sizes.text * 3), tape.single(sizes.batch),
	}
	var image, text *value // what another stage sent lies in a buffer
	if tape.first() {
		image = tape.linear(root, "x_embedder", sizes.imageRows())
	}
	temb := tape.conditions(root.in("time_text_embed"), sizes.batch)
	if tape.first() {
		text = tape.linear(root, "context_embedder", sizes.textRows())
	}
	ids := tape.new((sizes.image + sizes.text) * 3)
	angles := tape.fluxAngles(sizes.image+sizes.text, root)
	tape.blocks(root, "transformer_blocks", func(block module) { tape.fluxDouble(block, sizes, &image, &text) })
	tape.blocks(root, "single_transformer_blocks", func(block module) { tape.fluxSingle(block, sizes, &image, &text) })
	if tape.stage != nil { // both streams are joined, and what goes on are views
		joined := tape.new(sizes.rows() * sizes.dim)
		tape.become(&image, joined)
		tape.become(&text, joined.hold())
	}
	if tape.last() {
		tape.jointEnd(root, sizes, &image, temb)
	}
	tape.drop(image, text, temb, ids)
	tape.drop(angles...)
	tape.drop(inputs...)
}

// conditions is CombinedTimestep(Guidance)TextProjEmbeddings: sums of embedded
// vectors, a handful of rows.
func (tape *tape) conditions(mod module, batch int64) *value {
	sum := tape.timestepEmbedding(mod.in("timestep_embedder"), batch)
	for _, name := range []string{"guidance_embedder", "text_embedder"} {
		if mod.has(name + ".linear_1.weight") {
			more := tape.timestepEmbedding(mod.in(name), batch)
			both := tape.new(batch * mod.out(name+".linear_2"))
			tape.drop(sum, more)
			sum = both
		}
	}
	return sum
}

// fluxAngles are FluxPosEmbed's cosines and sines, a row a token, joined from
// three axes in double precision.
func (tape *tape) fluxAngles(tokens int64, root module) []*value {
	width := root.shapes["transformer_blocks.0.attn.norm_q.weight"]
	if width == nil {
		width = root.shapes["single_transformer_blocks.0.attn.norm_q.weight"]
	}
	if width == nil {
		return nil
	}
	axes := []*value{tape.single(tokens * width[0]), tape.single(tokens * width[0])}
	both := []*value{tape.single(tokens * width[0]), tape.single(tokens * width[0])}
	tape.drop(axes...)
	return both
}

// fluxDouble is FluxTransformerBlock. The tuple that attention gave holds both
// results until the block ends.
func (tape *tape) fluxDouble(block module, sizes joint, image, text **value) {
	imageMod := tape.modulation(block, "norm1.linear", sizes.batch)
	normed := tape.modulated(sizes.batch, sizes.imageRows(), sizes.dim)
	textMod := tape.modulation(block, "norm1_context.linear", sizes.batch)
	normedText := tape.modulated(sizes.batch, sizes.textRows(), sizes.dim)
	attended, attendedText := tape.fluxAttention(block.in("attn"), sizes, true)
	gated := tape.new(sizes.imageRows() * sizes.dim)
	hidden := tape.new(sizes.imageRows() * sizes.dim)
	tape.become(&normed, tape.layerNorm(sizes.imageRows(), sizes.dim))
	tape.become(&normed, tape.scaleShift(normed.hold(), sizes.batch, sizes.imageRows()*sizes.dim, sizes.dim))
	result := tape.feedForward(block.in("ff"), sizes.imageRows(), false)
	tape.become(&result, tape.new(sizes.imageRows()*sizes.dim))
	tape.become(&hidden, tape.new(sizes.imageRows()*sizes.dim))
	gatedText := tape.new(sizes.textRows() * sizes.dim)
	hiddenText := tape.new(sizes.textRows() * sizes.dim)
	tape.become(&normedText, tape.layerNorm(sizes.textRows(), sizes.dim))
	tape.become(&normedText, tape.scaleShift(normedText.hold(), sizes.batch, sizes.textRows()*sizes.dim, sizes.dim))
	resultText := tape.feedForward(block.in("ff_context"), sizes.textRows(), false)
	product := tape.new(sizes.textRows() * sizes.dim)
	tape.become(&hiddenText, tape.new(sizes.textRows()*sizes.dim))
	tape.drop(product, imageMod, textMod, normed, normedText, attended, attendedText, gated, result, gatedText, resultText)
	tape.become(image, hidden)
	tape.become(text, hiddenText)
}

// fluxAttention is FluxAttnProcessor of both streams, or of one row that holds
// both; the text's own projections are named until it returns.
func (tape *tape) fluxAttention(attn module, sizes joint, both bool) (image, text *value) {
	own, added := sizes.rows()*sizes.dim, int64(0)
	ownRows := sizes.rows()
	if both {
		own, added, ownRows = sizes.imageRows()*sizes.dim, sizes.textRows()*sizes.dim, sizes.imageRows()
	}
	width := sizes.dim / attn.headCount()
	query, key, val := tape.linear(attn, "to_q", ownRows), tape.linear(attn, "to_k", ownRows), tape.linear(attn, "to_v", ownRows)
	var extra []*value
	if both {
		extra = []*value{tape.linear(attn, "add_q_proj", sizes.textRows()), tape.linear(attn, "add_k_proj", sizes.textRows()), tape.linear(attn, "add_v_proj", sizes.textRows())}
	}
	tape.become(&query, tape.rmsNorm(own, width))
	tape.become(&key, tape.rmsNorm(own, width))
	if both {
		tape.become(&extra[0], tape.rmsNorm(added, width))
		tape.become(&extra[1], tape.rmsNorm(added, width))
		tape.become(&query, tape.new(own+added))
		tape.become(&key, tape.new(own+added))
		tape.become(&val, tape.new(own+added))
	}
	tape.become(&query, tape.rotated(own+added))
	tape.become(&key, tape.rotated(own+added))
	out := tape.fluxAttend(sizes, attn.headCount(), &key, &val)
	if both {
		part := tape.split(out, sizes.batch, own)
		image = tape.linear(attn, "to_out.0", sizes.imageRows())
		tape.drop(part)
		part = tape.split(out, sizes.batch, added)
		text = tape.linear(attn, "to_add_out", sizes.textRows())
		tape.drop(part, out)
		out = nil
	}
	tape.drop(query, key, val)
	tape.drop(extra...)
	if both {
		return image, text
	}
	return out, nil
}

// fluxAttend is attention of both streams' rows: of a stage of PipeFusion the
// text's are joined in attention again.
func (tape *tape) fluxAttend(sizes joint, heads int64, key, val **value) *value {
	image, text, tokens := sizes.imageRows()*sizes.dim, sizes.textRows()*sizes.dim, sizes.image+sizes.text
	of := usp{image: image, text: text, batch: sizes.batch, dim: sizes.dim, heads: heads, fill: true}
	switch {
	case tape.stage != nil:
		tape.pipefused(image, image+text, key, val)
	case tape.gpus > 1:
		of.image, of.text, of.together, of.fill = image+text, 0, true, tape.gpus > tape.ring
	default:
		return tape.attend(sizes.batch, heads, tokens, tokens, sizes.dim)
	}
	return tape.usp(of)
}

// fluxSingle is FluxSingleTransformerBlock: both streams in one row, attention
// beside the feed-forward.
func (tape *tape) fluxSingle(block module, sizes joint, image, text **value) {
	elements := sizes.rows() * sizes.dim
	hidden := tape.new(elements) // the residual too
	gate := tape.modulation(block, "norm.linear", sizes.batch)
	normed := tape.modulated(sizes.batch, sizes.rows(), sizes.dim)
	up := tape.linear(block, "proj_mlp", sizes.rows())
	active := tape.new(sizes.rows() * block.out("proj_mlp"))
	tape.drop(up)
	attended, _ := tape.fluxAttention(block.in("attn"), sizes, false)
	residual := hidden
	joined := tape.new(sizes.rows() * block.inward("proj_out"))
	down := tape.linear(block, "proj_out", sizes.rows())
	gated := tape.new(elements)
	tape.drop(down, joined)
	out := tape.new(elements)
	tape.drop(gated, residual, normed, gate, active, attended)
	tape.become(image, out)
	tape.become(text, out.hold())
}

// jointEnd is norm_out and proj_out.
func (tape *tape) jointEnd(root module, sizes joint, image **value, _ *value) {
	vectors := tape.modulation(root, "norm_out.linear", sizes.batch)
	normed := tape.modulated(sizes.batch, sizes.imageRows(), sizes.dim)
	tape.drop(vectors)
	tape.become(image, normed)
	tape.drop(tape.linear(root, "proj_out", sizes.imageRows()))
}
