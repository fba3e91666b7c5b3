package forward

type hunyuanRun struct{ joint }

// hunyuanVideo is HunyuanVideoTransformer3DModel.forward (transformer_hunyuan_video.py). The text's
// refiner, a few rows at the beginning, is left out: it is no peak.
func hunyuanVideo(tape *tape, root module, call Call) {
	channels := root.inward("x_embedder.proj")
	deep, patch := root.side("x_embedder.proj", 2), root.side("x_embedder.proj", 3)
	frames, height, width := latentFrames(call.Frames), call.Height/pixels, call.Width/pixels
	run := hunyuanRun{joint{tape: tape, batch: call.Batch, image: call.share(frames / deep * (height / patch) * (width / patch)), text: call.ShareText(), dim: root.out("x_embedder.proj")}}
	context := root.inward("context_embedder.proj_in")
	inputs := []*value{
		run.new(run.batch * channels * frames * height * width), run.alloc(8 * run.batch), run.new(run.textRows() * context), run.new(run.textRows()),
		run.new(run.batch * root.inward("time_text_embed.text_embedder.linear_1")), run.new(run.batch),
	}
	turn := run.dim / root.at("transformer_blocks", 0).in("attn").headCount()
	axes := []*value{run.single(run.image * turn), run.single(run.image * turn)}
	angles := []*value{run.single(run.image * turn), run.single(run.image * turn)}
	run.drop(axes...)
	temb := run.conditions(root.in("time_text_embed"))
	image := run.conv(root, "x_embedder.proj", run.imageRows())
	text := run.linear(root, "context_embedder.proj_in", run.textRows())
	mask := run.alloc(run.batch * (run.image + run.text))
	run.blocks(root, "transformer_blocks", func(block module) { run.doubleBlock(block, &image, &text) })
	run.blocks(root, "single_transformer_blocks", func(block module) { run.singleBlock(block, &image, &text) })
	run.end(root, &image)
	run.drop(image, text, temb, mask)
	run.drop(angles...)
	run.drop(inputs...)
}

// doubleBlock is HunyuanVideoTransformerBlock.
func (run hunyuanRun) doubleBlock(block module, image, text **value) {
	elements, added := run.imageRows()*run.dim, run.textRows()*run.dim
	imageMod := run.modulation(block, "norm1.linear", run.batch)
	normed := run.modulated(run.batch, run.imageRows(), run.dim)
	textMod := run.modulation(block, "norm1_context.linear", run.batch)
	normedText := run.modulated(run.batch, run.textRows(), run.dim)
	attended, attendedText := run.attention(block.in("attn"), true)
	hidden := run.gatedSum(elements)
	hiddenText := run.gatedSum(added)
	run.become(&normed, run.layerNorm(run.imageRows(), run.dim))
	run.become(&normedText, run.layerNorm(run.textRows(), run.dim))
	run.become(&normed, run.scaleShift(normed.hold(), run.batch, elements, run.dim))
	run.become(&normedText, run.scaleShift(normedText.hold(), run.batch, added, run.dim))
	result := run.feedForward(block.in("ff"), run.imageRows(), false)
	resultText := run.feedForward(block.in("ff_context"), run.textRows(), false)
	run.become(&hidden, run.gatedSum(elements))
	run.become(&hiddenText, run.gatedSum(added))
	run.drop(imageMod, textMod, normed, normedText, attended, attendedText, result, resultText)
	run.become(image, hidden)
	run.become(text, hiddenText)
}

// attention is HunyuanVideoAttnProcessor2_0. Without projections of its own text and video are one
// row, only the video is rotated, and the result is not projected.
func (run hunyuanRun) attention(attn module, both bool) (image, text *value) {
	own, added, whole := run.imageRows()*run.dim, run.textRows()*run.dim, run.rows()*run.dim
	rows, elements, width := run.imageRows(), own, run.dim/attn.headCount()
	var joined *value
	if !both {
		rows, elements = run.rows(), whole
		joined = run.new(whole)
	}
	query, key, val := run.linear(attn, "to_q", rows), run.linear(attn, "to_k", rows), run.linear(attn, "to_v", rows)
	run.become(&query, run.ownRMSNorm(elements, width))
	run.become(&key, run.ownRMSNorm(elements, width))
	for _, name := range []**value{&query, &key} {
		turned := run.rotated(own)
		if !both {
			row := run.new(whole)
			run.drop(turned)
			turned = row
		}
		run.become(name, turned)
	}
	var extra []*value
	if both {
		extra = []*value{run.linear(attn, "add_q_proj", run.textRows()), run.linear(attn, "add_k_proj", run.textRows()), run.linear(attn, "add_v_proj", run.textRows())}
		run.become(&extra[0], run.ownRMSNorm(added, width))
		run.become(&extra[1], run.ownRMSNorm(added, width))
		run.become(&query, run.new(whole))
		run.become(&key, run.new(whole))
		run.become(&val, run.new(whole))
	}
	out := run.attend(run.batch, attn.headCount(), run.image+run.text, run.image+run.text, run.dim)
	run.drop(joined)
	if both {
		image = run.linear(attn, "to_out.0", run.imageRows())
		text = run.linear(attn, "to_add_out", run.textRows())
		run.drop(out)
	} else {
		image, text = out, out.hold()
	}
	run.drop(query, key, val)
	run.drop(extra...)
	return image, text
}

// singleBlock is HunyuanVideoSingleTransformerBlock.
func (run hunyuanRun) singleBlock(block module, image, text **value) {
	whole := run.rows() * run.dim
	residual := run.new(whole)
	gate := run.modulation(block, "norm.linear", run.batch)
	normed := run.modulated(run.batch, run.rows(), run.dim)
	up := run.linear(block, "proj_mlp", run.rows())
	active := run.new(run.rows() * block.out("proj_mlp"))
	run.drop(up)
	attended, attendedText := run.attention(block.in("attn"), false)
	run.become(&attended, run.new(whole))
	joined := run.new(run.rows() * block.inward("proj_out"))
	down := run.linear(block, "proj_out", run.rows())
	hidden := run.new(whole)
	run.drop(down, joined)
	run.become(&hidden, run.new(whole))
	run.drop(residual, gate, normed, active, attended, attendedText)
	run.become(image, hidden)
	run.become(text, hidden.hold())
}
