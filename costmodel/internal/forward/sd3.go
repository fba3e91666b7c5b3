package forward

// sd3 is SD3Transformer2DModel.forward (transformer_sd3.py).
func sd3(tape *tape, root module, call Call) {
	channels, patch := root.inward("pos_embed.proj"), root.side("pos_embed.proj", 2)
	height, width := call.Height/pixels, call.Width/pixels
	sizes := joint{batch: call.Batch, image: call.share((height / patch) * (width / patch)), text: call.ShareText(), shared: call.Text%max(1, call.Split) == 0, dim: root.out("pos_embed.proj")}
	inputs := []*value{
		tape.new(sizes.batch * channels * height * width), tape.new(sizes.textRows() * root.inward("context_embedder")),
		tape.new(sizes.batch * root.inward("time_text_embed.text_embedder.linear_1")), tape.single(sizes.batch),
	}
	patches := tape.conv(root, "pos_embed.proj", sizes.imageRows())
	places := tape.new(sizes.image * sizes.dim)
	placed := tape.new(sizes.imageRows() * sizes.dim)
	tape.drop(patches, places)
	image := tape.new(sizes.imageRows() * sizes.dim)
	tape.drop(placed)
	temb := tape.conditions(root.in("time_text_embed"), sizes.batch)
	text := tape.linear(root, "context_embedder", sizes.textRows())
	tape.blocks(root, "transformer_blocks", func(block module) { tape.jointBlock(block, sizes, &image, &text) })
	tape.jointEnd(root, sizes, &image, temb)
	tape.drop(image, text, temb)
	tape.drop(inputs...)
}

// pixels are the sides of the square of pixels that a latent stands for.
const pixels = 8

// jointBlock is JointTransformerBlock (attention.py).
func (tape *tape) jointBlock(block module, sizes joint, image, text **value) {
	elements, dual, last := sizes.imageRows()*sizes.dim, block.has("attn2.to_q.weight"), !block.has("attn.to_add_out.weight")
	imageMod := tape.modulation(block, "norm1.linear", sizes.batch)
	var normed, second *value
	if dual { // SD35AdaLayerNormZeroX: one norm, two modulations
		plain := tape.layerNorm(sizes.imageRows(), sizes.dim)
		normed = tape.scaleShift(plain.hold(), sizes.batch, elements, sizes.dim)
		second = tape.scaleShift(plain.hold(), sizes.batch, elements, sizes.dim)
		tape.drop(plain)
	} else {
		normed = tape.modulated(sizes.batch, sizes.imageRows(), sizes.dim)
	}
	textMod := tape.modulation(block, "norm1_context.linear", sizes.batch)
	normedText := tape.modulated(sizes.batch, sizes.textRows(), sizes.dim)
	attended, attendedText := tape.jointAttention(block.in("attn"), sizes, true)
	tape.become(&attended, tape.new(elements))
	hidden := tape.new(elements)
	var more *value
	if dual {
		more, _ = tape.jointAttention(block.in("attn2"), sizes, false)
		tape.become(&more, tape.new(elements))
		tape.become(&hidden, tape.new(elements))
	}
	tape.become(&normed, tape.layerNorm(sizes.imageRows(), sizes.dim))
	tape.become(&normed, tape.scaleShift(normed.hold(), sizes.batch, elements, sizes.dim))
	result := tape.feedForward(block.in("ff"), sizes.imageRows(), false)
	tape.become(&result, tape.new(elements))
	tape.become(&hidden, tape.new(elements))
	var hiddenText, resultText *value
	if !last {
		tape.become(&attendedText, tape.new(sizes.textRows()*sizes.dim))
		hiddenText = tape.new(sizes.textRows() * sizes.dim)
		tape.become(&normedText, tape.layerNorm(sizes.textRows(), sizes.dim))
		tape.become(&normedText, tape.scaleShift(normedText.hold(), sizes.batch, sizes.textRows()*sizes.dim, sizes.dim))
		resultText = tape.feedForward(block.in("ff_context"), sizes.textRows(), false)
		product := tape.new(sizes.textRows() * sizes.dim)
		tape.become(&hiddenText, tape.new(sizes.textRows()*sizes.dim))
		tape.drop(product)
	}
	tape.drop(imageMod, textMod, normed, second, normedText, attended, attendedText, more, result, resultText)
	tape.become(image, hidden)
	tape.become(text, hiddenText)
}

// jointAttention is JointAttnProcessor2_0 (attention_processor.py). Joined
// queries lie head by head, and so does what the kernel gives: it is copied
// into rows.
func (tape *tape) jointAttention(attn module, sizes joint, both bool) (image, text *value) {
	own, added, tokens := sizes.imageRows()*sizes.dim, int64(0), sizes.image
	width := sizes.dim / attn.headCount()
	query, key, val := tape.linear(attn, "to_q", sizes.imageRows()), tape.linear(attn, "to_k", sizes.imageRows()), tape.linear(attn, "to_v", sizes.imageRows())
	normed := attn.has("norm_q.weight")
	if normed {
		tape.become(&query, tape.ownRMSNorm(own, width))
		tape.become(&key, tape.ownRMSNorm(own, width))
	}
	var extra []*value
	joined := tape.gpus == 1 || sizes.shared // else attention joins them
	if both {
		added, tokens = sizes.textRows()*sizes.dim, sizes.image+sizes.text
		extra = []*value{tape.linear(attn, "add_q_proj", sizes.textRows()), tape.linear(attn, "add_k_proj", sizes.textRows()), tape.linear(attn, "add_v_proj", sizes.textRows())}
		if normed {
			tape.become(&extra[0], tape.ownRMSNorm(added, width))
			tape.become(&extra[1], tape.ownRMSNorm(added, width))
		}
	}
	if both && joined {
		tape.become(&query, tape.new(own+added))
		tape.become(&key, tape.new(own+added))
		tape.become(&val, tape.new(own+added))
	}
	out := tape.jointAttend(usp{image: own, text: added, batch: sizes.batch, dim: sizes.dim, heads: attn.headCount()}, joined, tokens)
	if both {
		if tape.gpus == 1 {
			tape.become(&out, tape.new(own+added))
		}
		if attn.has("to_add_out.weight") {
			text = tape.linear(attn, "to_add_out", sizes.textRows())
		} else {
			text = out.hold()
		}
	}
	image = tape.linear(attn, "to_out.0", sizes.imageRows())
	tape.drop(out, query, key, val)
	tape.drop(extra...)
	return image, text
}

// jointAttend is attention of joined rows, or of a picture's, beside which
// every GPU has the whole text (xfuser: xFuserJointAttnProcessor2_0). Its cache of
// a sequence that is cut hands keys and values through.
func (tape *tape) jointAttend(of usp, joined bool, tokens int64) *value {
	if tape.gpus == 1 {
		return tape.attend(of.batch, of.heads, tokens, tokens, of.dim)
	}
	if joined {
		of.image, of.text = of.image+of.text, 0
	}
	of.copied, of.fill = true, tape.gpus > tape.ring
	return tape.usp(of)
}
