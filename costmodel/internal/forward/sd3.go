package forward

type sd3Run struct{ joint }

// sd3 is SD3Transformer2DModel.forward (transformer_sd3.py).
func sd3(tape *tape, root module, call Call) {
	channels, patch := root.inward("pos_embed.proj"), root.side("pos_embed.proj", 2)
	height, width := call.Height/pixels, call.Width/pixels
	run := sd3Run{joint{tape: tape, batch: call.Batch, image: call.share((height / patch) * (width / patch)), text: call.ShareText(), shared: call.Text%max(1, call.Split) == 0, dim: root.out("pos_embed.proj")}}
	inputs := []*value{
		run.new(run.batch * channels * height * width), run.new(run.textRows() * root.inward("context_embedder")),
		run.new(run.batch * root.inward("time_text_embed.text_embedder.linear_1")), run.single(run.batch),
	}
	patches := run.conv(root, "pos_embed.proj", run.imageRows())
	places := run.new(run.image * run.dim)
	placed := run.new(run.imageRows() * run.dim)
	run.drop(patches, places)
	image := run.new(run.imageRows() * run.dim)
	run.drop(placed)
	temb := run.conditions(root.in("time_text_embed"))
	text := run.linear(root, "context_embedder", run.textRows())
	run.blocks(root, "transformer_blocks", func(block module) { run.block(block, &image, &text) })
	run.end(root, &image)
	run.drop(image, text, temb)
	run.drop(inputs...)
}

// pixels is the side of a latent's square of pixels.
const pixels = 8

// block is JointTransformerBlock (attention.py).
func (run sd3Run) block(block module, image, text **value) {
	elements, dual, last := run.imageRows()*run.dim, block.has("attn2.to_q.weight"), !block.has("attn.to_add_out.weight")
	imageMod := run.modulation(block, "norm1.linear", run.batch)
	var normed, second *value
	if dual { // SD35AdaLayerNormZeroX: one norm, two modulations
		plain := run.layerNorm(run.imageRows(), run.dim)
		normed = run.scaleShift(plain.hold(), run.batch, elements, run.dim)
		second = run.scaleShift(plain.hold(), run.batch, elements, run.dim)
		run.drop(plain)
	} else {
		normed = run.modulated(run.batch, run.imageRows(), run.dim)
	}
	textMod := run.modulation(block, "norm1_context.linear", run.batch)
	normedText := run.modulated(run.batch, run.textRows(), run.dim)
	attended, attendedText := run.attention(block.in("attn"), true)
	run.become(&attended, run.new(elements))
	hidden := run.new(elements)
	var more *value
	if dual {
		more, _ = run.attention(block.in("attn2"), false)
		run.become(&more, run.new(elements))
		run.become(&hidden, run.new(elements))
	}
	run.become(&normed, run.layerNorm(run.imageRows(), run.dim))
	run.become(&normed, run.scaleShift(normed.hold(), run.batch, elements, run.dim))
	result := run.feedForward(block.in("ff"), run.imageRows(), false)
	run.become(&result, run.new(elements))
	run.become(&hidden, run.new(elements))
	var hiddenText, resultText *value
	if !last {
		run.become(&attendedText, run.new(run.textRows()*run.dim))
		hiddenText = run.new(run.textRows() * run.dim)
		run.become(&normedText, run.layerNorm(run.textRows(), run.dim))
		run.become(&normedText, run.scaleShift(normedText.hold(), run.batch, run.textRows()*run.dim, run.dim))
		resultText = run.feedForward(block.in("ff_context"), run.textRows(), false)
		product := run.new(run.textRows() * run.dim)
		run.become(&hiddenText, run.new(run.textRows()*run.dim))
		run.drop(product)
	}
	run.drop(imageMod, textMod, normed, second, normedText, attended, attendedText, more, result, resultText)
	run.become(image, hidden)
	run.become(text, hiddenText)
}

// attention is JointAttnProcessor2_0 (attention_processor.py). Joined queries and the kernel's
// result are ordered by heads; the result is copied into rows.
func (run sd3Run) attention(attn module, both bool) (image, text *value) {
	own, added, tokens := run.imageRows()*run.dim, int64(0), run.image
	width := run.dim / attn.headCount()
	query, key, val := run.linear(attn, "to_q", run.imageRows()), run.linear(attn, "to_k", run.imageRows()), run.linear(attn, "to_v", run.imageRows())
	normed := attn.has("norm_q.weight")
	if normed {
		run.become(&query, run.ownRMSNorm(own, width))
		run.become(&key, run.ownRMSNorm(own, width))
	}
	var extra []*value
	joined := run.gpus == 1 || run.shared // else attention joins them
	if both {
		added, tokens = run.textRows()*run.dim, run.image+run.text
		extra = []*value{run.linear(attn, "add_q_proj", run.textRows()), run.linear(attn, "add_k_proj", run.textRows()), run.linear(attn, "add_v_proj", run.textRows())}
		if normed {
			run.become(&extra[0], run.ownRMSNorm(added, width))
			run.become(&extra[1], run.ownRMSNorm(added, width))
		}
	}
	if both && joined {
		run.become(&query, run.new(own+added))
		run.become(&key, run.new(own+added))
		run.become(&val, run.new(own+added))
	}
	out := run.attendJoined(usp{image: own, text: added, batch: run.batch, dim: run.dim, heads: attn.headCount()}, joined, tokens)
	if both {
		if run.gpus == 1 {
			run.become(&out, run.new(own+added))
		}
		if attn.has("to_add_out.weight") {
			text = run.linear(attn, "to_add_out", run.textRows())
		} else {
			text = out.hold()
		}
	}
	image = run.linear(attn, "to_out.0", run.imageRows())
	run.drop(out, query, key, val)
	run.drop(extra...)
	return image, text
}

// attendJoined is attention of joined rows, or of a picture's rows when every GPU has the whole text
// (xfuser: xFuserJointAttnProcessor2_0). Its cache of a split sequence passes keys and values through.
func (run sd3Run) attendJoined(of usp, joined bool, tokens int64) *value {
	if run.gpus == 1 {
		return run.attend(of.batch, of.heads, tokens, tokens, of.dim)
	}
	if joined {
		of.image, of.text = of.image+of.text, 0
	}
	of.copied, of.fill = true, run.gpus > run.ring
	return run.usp(of)
}
