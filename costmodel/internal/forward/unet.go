package forward

// unet is UNet2DConditionModel.forward (unet_2d_condition.py) with two texts'
// embeddings; every block's results wait for the way up.
func unet(tape *tape, root module, call Call) {
	sample := picture{batch: call.Batch, channels: root.inward("conv_in"), frames: 1, height: call.Height / pixels, width: call.Width / pixels}
	latents := tape.picture(sample)
	run := unetRun{tape: tape, batch: call.Batch, text: call.Text}
	context := tape.new(call.Batch * call.Text * run.context(root))
	first := tape.timestepEmbedding(root.in("time_embedding"), call.Batch)
	if root.has("add_embedding.linear_1.weight") {
		added := tape.timestepEmbedding(root.in("add_embedding"), call.Batch)
		tape.become(&first, tape.new(call.Batch*root.out("add_embedding.linear_2")))
		tape.drop(added)
	}
	sample = tape.convolved(root, "conv_in", latents, sample)
	skipped := []picture{sample}
	sample.hold()
	tape.blocks(root, "down_blocks", func(block module) { skipped = append(skipped, run.down(block, &sample)...) })
	if root.has("mid_block.resnets.0.conv1.weight") {
		middle := root.in("mid_block")
		hidden := tape.resnet(middle.at("resnets", 0), sample, true)
		tape.replace(&hidden, run.transformer(middle.in("attentions.0"), hidden))
		tape.replace(&hidden, tape.resnet(middle.at("resnets", 1), hidden, true))
		tape.replace(&sample, hidden)
	}
	var skips []picture
	for i := range root.count("up_blocks") {
		block := root.at("up_blocks", i)
		count := len(skipped) - block.count("resnets")
		for _, pic := range skips {
			tape.drop(pic.value)
		}
		skips, skipped = skipped[count:], skipped[:count]
		next := picture{}
		if count > 0 {
			next = skipped[count-1]
		}
		weights := tape.blockWeights(block)
		run.up(block, &sample, skips, next)
		tape.drop(weights)
	}
	if root.has("conv_norm_out.weight") {
		tape.replace(&sample, tape.groupNorm(sample))
		tape.replace(&sample, tape.like(sample))
	}
	tape.replace(&sample, tape.convolved(root, "conv_out", sample, sample))
	for _, pic := range append(skips, sample, latents) {
		tape.drop(pic.value)
	}
	tape.drop(context, first)
}

// unetRun is what all blocks share.
type unetRun struct {
	*tape
	batch, text int64
}

// context is the width of the text that attention reads.
func (run unetRun) context(root module) int64 {
	for name, shape := range root.shapes {
		if len(name) > 17 && name[len(name)-17:] == "attn2.to_k.weight" {
			return shape[1]
		}
	}
	return 0
}

// down is DownBlock2D or CrossAttnDownBlock2D, and its skip connections.
func (run unetRun) down(block module, sample *picture) []picture {
	var left []picture
	hidden := *sample
	hidden.hold()
	for j := range block.count("resnets") {
		run.replace(&hidden, run.resnet(block.at("resnets", j), hidden, true))
		if block.count("attentions") > 0 {
			run.replace(&hidden, run.transformer(block.at("attentions", j), hidden))
		}
		hidden.hold()
		left = append(left, hidden)
	}
	if block.has("downsamplers.0.conv.weight") {
		run.replace(&hidden, run.halved(block, "downsamplers.0.conv", hidden, false))
		hidden.hold()
		left = append(left, hidden)
	}
	run.replace(sample, hidden)
	return left
}

// up is UpBlock2D or CrossAttnUpBlock2D; next has the size to grow to, a
// doubled one or one less (unet_2d_condition.py: forward_upsample_size).
func (run unetRun) up(block module, sample *picture, skips []picture, next picture) {
	hidden := *sample
	hidden.hold()
	for j := range block.count("resnets") {
		skip := skips[len(skips)-1-j]
		joined := hidden
		joined.channels, joined.strided = hidden.channels+skip.channels, false
		run.replace(&hidden, run.picture(joined))
		run.replace(&hidden, run.resnet(block.at("resnets", j), hidden, true))
		if block.count("attentions") > 0 {
			run.replace(&hidden, run.transformer(block.at("attentions", j), hidden))
		}
	}
	if block.has("upsamplers.0.conv.weight") {
		run.replace(&hidden, run.grown(block, "upsamplers.0.conv", hidden, next.height, next.width))
	}
	run.replace(sample, hidden)
}

// transformer is Transformer2DModel.forward (transformer_2d.py): places become rows, and places again.
func (run unetRun) transformer(mod module, input picture) picture {
	rows, dim := input.places(), input.channels
	byMatrix := mod.side("proj_in", 2) == 0
	normed := run.groupNorm(input)
	if !byMatrix {
		run.replace(&normed, run.convolved(mod, "proj_in", normed, normed))
	}
	hidden := run.new(rows * dim)
	run.drop(normed.value)
	if byMatrix {
		run.become(&hidden, run.linear(mod, "proj_in", rows))
	}
	for i := range mod.count("transformer_blocks") {
		run.become(&hidden, run.textBlock(mod.at("transformer_blocks", i), rows, dim))
	}
	last := input
	last.strided = false
	if byMatrix {
		projected := run.linear(mod, "proj_out", rows)
		last = run.picture(last)
		run.drop(projected)
	} else {
		apart := run.picture(last)
		last = run.convolved(mod, "proj_out", apart, apart)
		run.drop(apart.value)
	}
	sum := run.like(last)
	run.drop(last.value, hidden)
	return sum
}

// textBlock is BasicTransformerBlock.forward (attention.py).
func (run unetRun) textBlock(block module, rows, dim int64) *value {
	normed := run.layerNorm(rows, dim)
	attended := run.textAttention(block.in("attn1"), rows, rows/run.batch)
	hidden := run.new(rows * dim)
	run.become(&normed, run.layerNorm(rows, dim))
	run.become(&attended, run.textAttention(block.in("attn2"), rows, run.text))
	run.become(&hidden, run.new(rows*dim))
	run.become(&normed, run.layerNorm(rows, dim))
	result := run.feedForward(block.in("ff"), rows, true)
	run.become(&hidden, run.new(rows*dim))
	run.drop(normed, attended, result)
	return hidden
}

// textAttention is AttnProcessor2_0 of rows.
func (run unetRun) textAttention(attn module, rows, keys int64) *value {
	query, key, val := run.linear(attn, "to_q", rows), run.linear(attn, "to_k", run.batch*keys), run.linear(attn, "to_v", run.batch*keys)
	out := run.attend(run.batch, attn.headCount(), rows/run.batch, keys, attn.out("to_q"))
	run.become(&out, run.linear(attn, "to_out.0", rows))
	run.become(&out, run.new(rows*attn.out("to_out.0")))
	run.drop(query, key, val)
	return out
}
