package forward

type qwenRun struct{ joint }

// qwenImage is QwenImageTransformer2DModel.forward (transformer_qwenimage.py).
func qwenImage(tape *tape, root module, call Call) {
	run := qwenRun{joint{tape: tape, batch: call.Batch, image: call.share(call.Tokens), text: call.share(call.Text), dim: root.out("img_in")}}
	context := root.inward("txt_in")
	// GPUs that share the tokens embed all of them, and take views of their part
	// (xfuser: xFuserQwenImageTransformerWrapper.forward).
	allImage, allText := run.imageRows()*run.gpus, run.textRows()*run.gpus
	inputs := []*value{run.new(allImage * root.inward("img_in")), run.new(allText * context), run.new(run.batch)}
	image := run.linear(root, "img_in", allImage)
	normed := run.ownRMSNorm(allText*context, context)
	text := run.linear(root, "txt_in", allText)
	run.drop(normed)
	temb := run.timestepEmbedding(root.in("time_text_embed.timestep_embedder"), run.batch)
	width := run.dim / root.at("transformer_blocks", 0).in("attn").headCount()
	angles := run.angles(width)
	run.blocks(root, "transformer_blocks", func(block module) { run.block(block, &image, &text) })
	run.end(root, &image)
	run.drop(image, text, temb)
	run.drop(angles...)
	run.drop(inputs...)
}

// angles are QwenEmbedRope's: complex numbers, of 4096 places forwards and
// backwards, and of the picture, which a cache keeps, and the joined ones.
func (run qwenRun) angles(width int64) []*value {
	const places, complexWidth = 4096, 8
	row := width / 2 * complexWidth
	return []*value{run.alloc(places * row), run.alloc(places * row), run.alloc(run.image * row), run.alloc(run.image * row)}
}

// block is QwenImageTransformerBlock: every step has a name of its own, and lives until the block ends.
func (run qwenRun) block(block module, image, text **value) {
	elements, added := run.imageRows()*run.dim, run.textRows()*run.dim
	named := []*value{run.modulation(block, "img_mod.1", run.batch), run.modulation(block, "txt_mod.1", run.batch)}
	shifted := func(rows int64) {
		normed := run.layerNorm(rows, run.dim)
		named = append(named, normed, run.scaleShift(normed.hold(), run.batch, rows*run.dim, run.dim))
	}
	shifted(run.imageRows())
	shifted(run.textRows())
	attended, attendedText := run.attention(block.in("attn"))
	named = append(named, attended, attendedText)
	hidden := run.gatedSum(elements)
	hiddenText := run.gatedSum(added)
	shifted(run.imageRows())
	result := run.feedForward(block.in("img_mlp"), run.imageRows(), false)
	run.become(&hidden, run.gatedSum(elements))
	shifted(run.textRows())
	resultText := run.feedForward(block.in("txt_mlp"), run.textRows(), false)
	run.become(&hiddenText, run.gatedSum(added))
	run.drop(named...)
	run.drop(result, resultText)
	run.become(image, hidden)
	run.become(text, hiddenText)
}

// attention is QwenDoubleStreamAttnProcessor2_0: projections outlive the joined ones' making.
func (run qwenRun) attention(attn module) (image, text *value) {
	elements, added := run.imageRows()*run.dim, run.textRows()*run.dim
	width := run.dim / attn.headCount()
	var named []*value
	for _, name := range []string{"to_q", "to_k", "to_v"} {
		named = append(named, run.linear(attn, name, run.imageRows()))
	}
	for _, name := range []string{"add_q_proj", "add_k_proj", "add_v_proj"} {
		named = append(named, run.linear(attn, name, run.textRows()))
	}
	size := []int64{elements, elements, 0, added, added, 0}
	for i, count := range size {
		if count > 0 {
			run.become(&named[i], run.ownRMSNorm(count, width))
		}
	}
	for i, count := range size {
		if count > 0 {
			run.become(&named[i], run.rotatedComplex(count))
		}
	}
	for range 3 {
		named = append(named, run.new(elements+added))
	}
	out := run.attend(run.batch, attn.headCount(), run.image+run.text, run.image+run.text, run.dim)
	part := run.split(out, run.batch, elements)
	image = run.linear(attn, "to_out.0", run.imageRows())
	run.drop(part)
	part = run.split(out, run.batch, added)
	text = run.linear(attn, "to_add_out", run.textRows())
	run.drop(part, out)
	run.drop(named...)
	return image, text
}

// rotatedComplex is apply_rotary_emb_qwen with complex angles.
func (run qwenRun) rotatedComplex(elements int64) *value {
	upcast := run.single(elements)
	product := run.single(elements)
	out := run.new(elements)
	run.drop(upcast, product)
	return out
}
