package forward

type fluxRun struct{ joint }

// flux is FluxTransformer2DModel.forward (transformer_flux.py).
func flux(tape *tape, root module, call Call) {
	run := fluxRun{joint{tape: tape, batch: call.Batch, image: call.share(call.Tokens), text: call.ShareText(), dim: root.out("x_embedder")}}
	inputs := []*value{
		run.new(run.imageRows() * root.inward("x_embedder")), run.new(run.textRows() * root.inward("context_embedder")),
		run.new(run.batch * root.inward("time_text_embed.text_embedder.linear_1")), run.new(run.batch),
		run.new(run.image * 3), run.new(run.text * 3), run.single(run.batch),
	}
	var image, text *value // what another stage sent lies in a buffer
	if run.stage.isFirst() {
		image = run.linear(root, "x_embedder", run.imageRows())
	}
	temb := run.conditions(root.in("time_text_embed"))
	if run.stage.isFirst() {
		text = run.linear(root, "context_embedder", run.textRows())
	}
	ids := run.new((run.image + run.text) * 3)
	angles := run.angles(run.image+run.text, root)
	run.blocks(root, "transformer_blocks", func(block module) { run.doubleBlock(block, &image, &text) })
	run.blocks(root, "single_transformer_blocks", func(block module) { run.singleBlock(block, &image, &text) })
	if run.stage != nil { // both streams are joined, and views are passed on
		joined := run.new(run.rows() * run.dim)
		run.become(&image, joined)
		run.become(&text, joined.hold())
	}
	if run.stage.isLast() {
		run.end(root, &image)
	}
	run.drop(image, text, temb, ids)
	run.drop(angles...)
	run.drop(inputs...)
}

// angles are FluxPosEmbed's cosines and sines, a row a token, from three axes in double precision.
func (run fluxRun) angles(tokens int64, root module) []*value {
	width := root.shapes["transformer_blocks.0.attn.norm_q.weight"]
	if width == nil {
		width = root.shapes["single_transformer_blocks.0.attn.norm_q.weight"]
	}
	if width == nil {
		return nil
	}
	axes := []*value{run.single(tokens * width[0]), run.single(tokens * width[0])}
	both := []*value{run.single(tokens * width[0]), run.single(tokens * width[0])}
	run.drop(axes...)
	return both
}

// doubleBlock is FluxTransformerBlock. Attention's tuple holds both results until the block ends.
func (run fluxRun) doubleBlock(block module, image, text **value) {
	imageMod := run.modulation(block, "norm1.linear", run.batch)
	normed := run.modulated(run.batch, run.imageRows(), run.dim)
	textMod := run.modulation(block, "norm1_context.linear", run.batch)
	normedText := run.modulated(run.batch, run.textRows(), run.dim)
	attended, attendedText := run.attention(block.in("attn"), true)
	gated := run.new(run.imageRows() * run.dim)
	hidden := run.new(run.imageRows() * run.dim)
	run.become(&normed, run.layerNorm(run.imageRows(), run.dim))
	run.become(&normed, run.scaleShift(normed.hold(), run.batch, run.imageRows()*run.dim, run.dim))
	result := run.feedForward(block.in("ff"), run.imageRows(), false)
	run.become(&result, run.new(run.imageRows()*run.dim))
	run.become(&hidden, run.new(run.imageRows()*run.dim))
	gatedText := run.new(run.textRows() * run.dim)
	hiddenText := run.new(run.textRows() * run.dim)
	run.become(&normedText, run.layerNorm(run.textRows(), run.dim))
	run.become(&normedText, run.scaleShift(normedText.hold(), run.batch, run.textRows()*run.dim, run.dim))
	resultText := run.feedForward(block.in("ff_context"), run.textRows(), false)
	product := run.new(run.textRows() * run.dim)
	run.become(&hiddenText, run.new(run.textRows()*run.dim))
	run.drop(product, imageMod, textMod, normed, normedText, attended, attendedText, gated, result, gatedText, resultText)
	run.become(image, hidden)
	run.become(text, hiddenText)
}

// attention is FluxAttnProcessor of both streams, or of one row that holds
// both; the text's own projections are named until it returns.
func (run fluxRun) attention(attn module, both bool) (image, text *value) {
	own, added := run.rows()*run.dim, int64(0)
	ownRows := run.rows()
	if both {
		own, added, ownRows = run.imageRows()*run.dim, run.textRows()*run.dim, run.imageRows()
	}
	width := run.dim / attn.headCount()
	query, key, val := run.linear(attn, "to_q", ownRows), run.linear(attn, "to_k", ownRows), run.linear(attn, "to_v", ownRows)
	var extra []*value
	if both {
		extra = []*value{run.linear(attn, "add_q_proj", run.textRows()), run.linear(attn, "add_k_proj", run.textRows()), run.linear(attn, "add_v_proj", run.textRows())}
	}
	run.become(&query, run.rmsNorm(own, width))
	run.become(&key, run.rmsNorm(own, width))
	if both {
		run.become(&extra[0], run.rmsNorm(added, width))
		run.become(&extra[1], run.rmsNorm(added, width))
		run.become(&query, run.new(own+added))
		run.become(&key, run.new(own+added))
		run.become(&val, run.new(own+added))
	}
	run.become(&query, run.rotated(own+added))
	run.become(&key, run.rotated(own+added))
	out := run.attendJoined(attn.headCount(), &key, &val)
	if both {
		part := run.split(out, run.batch, own)
		image = run.linear(attn, "to_out.0", run.imageRows())
		run.drop(part)
		part = run.split(out, run.batch, added)
		text = run.linear(attn, "to_add_out", run.textRows())
		run.drop(part, out)
		out = nil
	}
	run.drop(query, key, val)
	run.drop(extra...)
	if both {
		return image, text
	}
	return out, nil
}

// attendJoined is attention of both streams' rows: of a stage of PipeFusion the
// text's are joined in attention again.
func (run fluxRun) attendJoined(heads int64, key, val **value) *value {
	image, text, tokens := run.imageRows()*run.dim, run.textRows()*run.dim, run.image+run.text
	of := usp{image: image, text: text, batch: run.batch, dim: run.dim, heads: heads, fill: true}
	switch {
	case run.stage != nil:
		run.pipefused(image, image+text, key, val)
	case run.gpus > 1:
		of.image, of.text, of.together, of.fill = image+text, 0, true, run.gpus > run.ring
	default:
		return run.attend(run.batch, heads, tokens, tokens, run.dim)
	}
	return run.usp(of)
}

// singleBlock is FluxSingleTransformerBlock: both streams in one row, feed-forward in parallel.
func (run fluxRun) singleBlock(block module, image, text **value) {
	elements := run.rows() * run.dim
	hidden := run.new(elements) // the residual too
	gate := run.modulation(block, "norm.linear", run.batch)
	normed := run.modulated(run.batch, run.rows(), run.dim)
	up := run.linear(block, "proj_mlp", run.rows())
	active := run.new(run.rows() * block.out("proj_mlp"))
	run.drop(up)
	attended, _ := run.attention(block.in("attn"), false)
	residual := hidden
	joined := run.new(run.rows() * block.inward("proj_out"))
	down := run.linear(block, "proj_out", run.rows())
	gated := run.new(elements)
	run.drop(down, joined)
	out := run.new(elements)
	run.drop(gated, residual, normed, gate, active, attended)
	run.become(image, out)
	run.become(text, out.hold())
}
