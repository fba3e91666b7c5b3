package forward

// fluxTraining is a Flux transformer in training.
type fluxTraining struct {
	*training
	batch, image, text, dim int64
	temb                    *value
	checkpoints             bool
}

func (run fluxTraining) imageRows() int64 { return run.batch * run.image }
func (run fluxTraining) textRows() int64  { return run.batch * run.text }
func (run fluxTraining) rows() int64      { return run.batch * (run.image + run.text) }

// trainFlux is FluxTransformer2DModel.forward (transformer_flux.py) with
// gradients: the prediction in the type of the weights.
func trainFlux(train *training, root module, call Call, checkpoints bool) *tensor {
	infer := fluxRun{joint{tape: train.tape, batch: call.Batch, image: call.Tokens, text: call.Text, dim: root.out("x_embedder")}}
	run := fluxTraining{training: train, batch: call.Batch, image: call.Tokens, text: call.Text, dim: infer.dim, checkpoints: checkpoints}
	image := &tensor{value: run.tape.linear(root, "x_embedder", run.imageRows()), elements: run.imageRows() * run.dim, width: run.width}
	run.temb = infer.conditions(root.in("time_text_embed"))
	text := &tensor{value: run.tape.linear(root, "context_embedder", run.textRows()), elements: run.textRows() * run.dim, width: run.width}
	ids := run.new((run.image + run.text) * 3)
	angles := infer.angles(run.image+run.text, root)
	run.angles = [2]*value{angles[0], angles[1]}
	run.list(root, "transformer_blocks", run.double, &image, &text)
	run.list(root, "single_transformer_blocks", run.joint, &image, &text)
	vectors := run.modulation(root, "norm_out.linear", run.batch)
	normed := run.norm(image, run.imageRows(), run.batch > 1)
	normed = run.modulatedBy(normed, run.batch, run.dim)
	run.drop(vectors)
	run.free(image)
	out := run.training.linear(root, "proj_out", normed, run.imageRows())
	run.free(normed, text)
	run.drop(run.temb, ids)
	return out
}

// list runs a list's blocks, each of which keeps its inputs alone if it is
// checkpointed.
func (run fluxTraining) list(root module, name string, block func(mod module, image, text *tensor) (*tensor, *tensor), image, text **tensor) {
	for i := range root.count(name) {
		mod, from, fromText := root.at(name, i), *image, *text
		results := run.checkpoint(run.checkpoints, []*tensor{from, fromText}, func() []*tensor {
			made, madeText := block(mod, from, fromText)
			return []*tensor{made, madeText}
		})
		run.free(from, fromText)
		*image, *text = results[0], results[1]
	}
}

// gated is gate * y, whose gate is a view of the modulation.
func (run fluxTraining) gated(y *tensor, modulation *value) *tensor { return run.unary(y, modulation) }

// feed is FeedForward with an approximate GELU.
func (run fluxTraining) feed(mod module, x *tensor, rows int64) *tensor {
	first := run.training.linear(mod, "net.0.proj", x, rows)
	active := run.unary(first, first.value)
	run.free(first)
	out := run.training.linear(mod, "net.2", active, rows)
	run.free(active)
	return out
}

// double is FluxTransformerBlock.forward.
func (run fluxTraining) double(block module, image, text *tensor) (*tensor, *tensor) {
	imageMod := run.modulation(block, "norm1.linear", run.batch)
	normed := run.modulatedBy(run.norm(image, run.imageRows(), false), run.batch, run.dim)
	textMod := run.modulation(block, "norm1_context.linear", run.batch)
	normedText := run.modulatedBy(run.norm(text, run.textRows(), false), run.batch, run.dim)
	attended, attendedText := run.attention(block.in("attn"), normed, normedText)
	gate := run.gated(attended, imageMod)
	hidden := run.added(image, gate)
	plain := run.norm(hidden, run.imageRows(), false)
	run.free(normed)
	normed = run.modulatedBy(plain.same(), run.batch, run.dim)
	run.free(plain)
	result := run.feed(block.in("ff"), normed, run.imageRows())
	scaled := run.gated(result, imageMod)
	run.free(result)
	next := run.added(hidden, scaled)
	run.free(hidden)
	gateText := run.gated(attendedText, textMod)
	hiddenText := run.added(text, gateText)
	plain = run.norm(hiddenText, run.textRows(), false)
	run.free(normedText)
	normedText = run.modulatedBy(plain.same(), run.batch, run.dim)
	run.free(plain)
	resultText := run.feed(block.in("ff_context"), normedText, run.textRows())
	scaledText := run.gated(resultText, textMod)
	nextText := run.added(hiddenText, scaledText)
	run.free(scaledText, hiddenText)
	run.drop(imageMod, textMod)
	run.free(normed, normedText, attended, attendedText, gate, scaled, gateText, resultText)
	return run.clipped(next, false), run.clipped(nextText, true)
}

// clipped is the clip of half precision, of the streams that have one.
func (run fluxTraining) clipped(x *tensor, has bool) *tensor {
	if !run.half || !has {
		return x
	}
	y := run.unary(x, x.value)
	run.free(x)
	return y
}

// attention is FluxAttnProcessor; text is nil where one row holds both streams.
func (run fluxTraining) attention(attn module, image, text *tensor) (*tensor, *tensor) {
	rows := image.elements / run.dim
	width := run.dim / attn.headCount()
	project := func(name string, x *tensor, rows int64) *tensor { return run.training.linear(attn, name, x, rows) }
	query, key, val := project("to_q", image, rows), project("to_k", image, rows), project("to_v", image, rows)
	var extra []*tensor
	if text != nil {
		extra = []*tensor{project("add_q_proj", text, run.textRows()), project("add_k_proj", text, run.textRows()), project("add_v_proj", text, run.textRows())}
	}
	rename := func(name **tensor, made *tensor) { old := *name; *name = made; run.free(old) }
	rename(&query, run.rms(query, width))
	rename(&key, run.rms(key, width))
	if text != nil {
		rename(&extra[0], run.rms(extra[0], width))
		rename(&extra[1], run.rms(extra[1], width))
		rename(&query, run.joined(run.batch > 1, extra[0], query))
		rename(&key, run.joined(run.batch > 1, extra[1], key))
		rename(&val, run.joined(run.batch > 1, extra[2], val))
	}
	rename(&query, run.turned(query))
	rename(&key, run.turned(key))
	out := run.attended(query, key, val, run.batch, attn.headCount(), run.dim)
	if text == nil {
		run.free(query, key, val)
		return out, nil
	}
	parts := run.divided(out, run.textRows()*run.dim, run.imageRows()*run.dim)
	gathered := run.gathered(parts[1], run.batch > 1)
	made := project("to_out.0", gathered, run.imageRows())
	run.free(gathered)
	gathered = run.gathered(parts[0], run.batch > 1)
	madeText := project("to_add_out", gathered, run.textRows())
	run.free(gathered)
	run.free(parts...)
	run.free(out, query, key, val)
	run.free(extra...)
	return made, madeText
}

// joint is FluxSingleTransformerBlock.forward.
func (run fluxTraining) joint(block module, image, text *tensor) (*tensor, *tensor) {
	hidden := run.joined(run.batch > 1, text, image)
	gate := run.modulation(block, "norm.linear", run.batch)
	normed := run.modulatedBy(run.norm(hidden, run.rows(), false), run.batch, run.dim)
	up := run.training.linear(block, "proj_mlp", normed, run.rows())
	active := run.unary(up, up.value)
	run.free(up)
	attended, _ := run.attention(block.in("attn"), normed, nil)
	both := run.joined(true, attended, active)
	down := run.training.linear(block, "proj_out", both, run.rows())
	scaled := run.gated(down, gate)
	run.free(down, both)
	out := run.added(hidden, scaled)
	run.free(scaled)
	out = run.clipped(out, true)
	textPart := run.sliced(out, run.textRows()*run.dim)
	imagePart := run.sliced(out, run.imageRows()*run.dim)
	run.free(hidden, normed, active, attended, out)
	run.drop(gate)
	return imagePart, textPart
}
