package forward

// qwenImage is QwenImageTransformer2DModel.forward (transformer_qwenimage.py).
func qwenImage(tape *tape, root module, call Call) {
	sizes := joint{batch: call.Batch, image: call.share(call.Tokens), text: call.share(call.Text), dim: root.out("img_in")}
	context := root.inward("txt_in")
	// GPUs that share the tokens embed all of them, and take views of their part
	// (xfuser: xFuserQwenImageTransformerWrapper.forward).
	allImage, allText := sizes.imageRows()*tape.gpus, sizes.textRows()*tape.gpus
	inputs := []*value{tape.new(allImage * root.inward("img_in")), tape.new(allText * context), tape.new(sizes.batch)}
	image := tape.linear(root, "img_in", allImage)
	normed := tape.ownRMSNorm(allText*context, context)
	text := tape.linear(root, "txt_in", allText)
	tape.drop(normed)
	temb := tape.timestepEmbedding(root.in("time_text_embed.timestep_embedder"), sizes.batch)
	width := sizes.dim / root.at("transformer_blocks", 0).in("attn").headCount()
	angles := tape.qwenAngles(sizes, width)
	tape.blocks(root, "transformer_blocks", func(block module) { tape.qwenBlock(block, sizes, &image, &text) })
	tape.jointEnd(root, sizes, &image, temb)
	tape.drop(image, text, temb)
	tape.drop(angles...)
	tape.drop(inputs...)
}

// qwenAngles are QwenEmbedRope's: complex numbers, of 4096 places forwards and
// backwards, and of the picture, which a cache keeps beside the joined ones.
func (tape *tape) qwenAngles(sizes joint, width int64) []*value {
	const places, complexWidth = 4096, 8
	row := width / 2 * complexWidth
	return []*value{tape.alloc(places * row), tape.alloc(places * row), tape.alloc(sizes.image * row), tape.alloc(sizes.image * row)}
}

// qwenBlock is QwenImageTransformerBlock: every step has a name of its own, and
// lives until the block ends.
func (tape *tape) qwenBlock(block module, sizes joint, image, text **value) {
	elements, added := sizes.imageRows()*sizes.dim, sizes.textRows()*sizes.dim
	named := []*value{tape.modulation(block, "img_mod.1", sizes.batch), tape.modulation(block, "txt_mod.1", sizes.batch)}
	shifted := func(rows int64) {
		normed := tape.layerNorm(rows, sizes.dim)
		named = append(named, normed, tape.scaleShift(normed.hold(), sizes.batch, rows*sizes.dim, sizes.dim))
	}
	sum := func(size int64) *value {
		product := tape.new(size)
		total := tape.new(size)
		tape.drop(product)
		return total
	}
	shifted(sizes.imageRows())
	shifted(sizes.textRows())
	attended, attendedText := tape.qwenAttention(block.in("attn"), sizes)
	named = append(named, attended, attendedText)
	hidden := sum(elements)
	hiddenText := sum(added)
	shifted(sizes.imageRows())
	result := tape.feedForward(block.in("img_mlp"), sizes.imageRows(), false)
	tape.become(&hidden, sum(elements))
	shifted(sizes.textRows())
	resultText := tape.feedForward(block.in("txt_mlp"), sizes.textRows(), false)
	tape.become(&hiddenText, sum(added))
	tape.drop(named...)
	tape.drop(result, resultText)
	tape.become(image, hidden)
	tape.become(text, hiddenText)
}

// qwenAttention is QwenDoubleStreamAttnProcessor2_0: both streams' projections
// keep their names beside the joined ones.
func (tape *tape) qwenAttention(attn module, sizes joint) (image, text *value) {
	elements, added := sizes.imageRows()*sizes.dim, sizes.textRows()*sizes.dim
	width := sizes.dim / attn.headCount()
	var named []*value
	for _, name := range []string{"to_q", "to_k", "to_v"} {
		named = append(named, tape.linear(attn, name, sizes.imageRows()))
	}
	for _, name := range []string{"add_q_proj", "add_k_proj", "add_v_proj"} {
		named = append(named, tape.linear(attn, name, sizes.textRows()))
	}
	size := []int64{elements, elements, 0, added, added, 0}
	for i, count := range size {
		if count > 0 {
			tape.become(&named[i], tape.ownRMSNorm(count, width))
		}
	}
	for i, count := range size {
		if count > 0 {
			tape.become(&named[i], tape.complexTurned(count))
		}
	}
	for range 3 {
		named = append(named, tape.new(elements+added))
	}
	out := tape.attend(sizes.batch, attn.headCount(), sizes.image+sizes.text, sizes.image+sizes.text, sizes.dim)
	part := tape.split(out, sizes.batch, elements)
	image = tape.linear(attn, "to_out.0", sizes.imageRows())
	tape.drop(part)
	part = tape.split(out, sizes.batch, added)
	text = tape.linear(attn, "to_add_out", sizes.textRows())
	tape.drop(part, out)
	tape.drop(named...)
	return image, text
}

// complexTurned is apply_rotary_emb_qwen with complex angles.
func (tape *tape) complexTurned(elements int64) *value {
	upcast := tape.single(elements)
	product := tape.single(elements)
	out := tape.new(elements)
	tape.drop(upcast, product)
	return out
}
