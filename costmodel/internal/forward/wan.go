package forward

// wanRun is a forward of a video transformer with separate text.
type wanRun struct {
	*tape
	batch, tokens, text int64
	dim                 int64
	seen                int64 // tokens of the picture that the video begins with
}

func (run wanRun) rows() int64     { return run.batch * run.tokens }
func (run wanRun) elements() int64 { return run.rows() * run.dim }

// latentFrames is an autoencoder's number of latent frames (the first alone, then four by four).
func latentFrames(frames int64) int64 { return (frames-1)/4 + 1 }

// wan is WanTransformer3DModel.forward (transformer_wan.py).
func wan(tape *tape, root module, call Call) {
	channels := root.inward("patch_embedding")
	deep, high, wide := root.side("patch_embedding", 2), root.side("patch_embedding", 3), root.side("patch_embedding", 4)
	frames, height, width := latentFrames(call.Frames), call.Height/pixels, call.Width/pixels
	run := wanRun{tape: tape, batch: call.Batch, tokens: call.share(frames / deep * (height / high) * (width / wide)), text: call.Text, dim: root.out("patch_embedding")}
	inputs := []*value{
		run.new(run.batch * channels * frames * height * width), run.single(run.batch),
		run.new(run.batch * run.text * root.inward("condition_embedder.text_embedder.linear_1")),
	}
	turn := root.turning("rope.freqs_cos", run.width)
	// GPUs that share the tokens embed all of them, and take views of their part
	// (xfuser: xFuserWanTransformer3DWrapper.forward).
	all := run.tokens * run.gpus
	cosine, sine := run.alloc(all*turn.dim*turn.width), run.alloc(all*turn.dim*turn.width)
	patches := run.conv(root, "patch_embedding", run.batch*all)
	hidden := run.new(run.batch * all * run.dim)
	run.drop(patches)
	embed := root.in("condition_embedder")
	temb := run.timestepEmbedding(embed.in("time_embedder"), run.batch)
	active := run.new(run.batch * run.dim)
	steps := run.linear(embed, "time_proj", run.batch)
	run.drop(active)
	text := run.timestepEmbedding(embed.in("text_embedder"), run.batch*run.text)
	if seen := run.pictureTokens(embed.in("image_embedder")); seen != nil {
		inputs = append(inputs, seen...)
		run.become(&text, run.new(run.batch*(run.text+run.seen)*run.dim))
	}
	run.blocks(root, "blocks", func(block module) { run.block(block, turn, &hidden) })
	normed := run.singleNorm(true)
	run.become(&hidden, normed)
	run.become(&hidden, run.linear(root, "proj_out", run.rows()))
	run.drop(run.new(run.rows()*root.out("proj_out")), hidden, text, temb, steps, cosine, sine)
	run.drop(inputs...)
}

// pictureTokens is WanImageEmbedding of the vision model's output: 257 tokens a picture, or one for
// each place; they are joined with the text's.
func (run *wanRun) pictureTokens(mod module) []*value {
	if !mod.has("norm1.weight") {
		return nil
	}
	run.seen = 257
	width := mod.inward("ff.net.0.proj")
	if places := mod.shapes[mod.in("pos_embed").path]; len(places) == 3 {
		run.seen = places[1]
	}
	rows := run.batch * run.seen
	input := run.new(rows * width)
	hidden := run.single(rows * width)
	run.become(&hidden, run.new(rows*width))
	run.become(&hidden, run.feedForward(mod.in("ff"), rows, false))
	run.become(&hidden, run.new(rows*run.dim))
	return []*value{input, hidden}
}

// turning is how wide a row of cosines is, and a value of it.
type turning struct{ dim, width int64 }

func (mod module) turning(name string, width int64) turning {
	shape := mod.shapes[name]
	if len(shape) < 2 {
		return turning{}
	}
	if mod.single[name] {
		width = 4
	}
	return turning{dim: shape[1], width: width}
}

// block is WanTransformerBlock; its residual sums are in single precision.
func (run wanRun) block(block module, turn turning, hidden **value) {
	steps := run.single(6 * run.batch * run.dim)
	normed := run.singleNorm(true)
	attended := run.attention(block.in("attn1"), run.tokens, turn)
	stream := run.gatedSum(false)
	run.become(&normed, run.singleNorm(false))
	run.become(&attended, run.attention(block.in("attn2"), run.text, turning{}))
	run.become(&stream, run.new(run.elements()))
	run.become(&normed, run.singleNorm(true))
	result := run.feedForward(block.in("ffn"), run.rows(), false)
	run.become(&stream, run.gatedSum(true))
	run.drop(steps, normed, attended, result)
	run.become(hidden, stream)
}

// singleNorm is the norm of x.float(), if modulated times 1 + scale plus shift, cast to x's type.
func (run wanRun) singleNorm(modulated bool) *value {
	upcast := run.single(run.elements())
	normed := run.single(run.elements())
	run.drop(run.single(run.rows()), upcast)
	if modulated {
		scaled := run.single(run.elements())
		run.drop(normed)
		normed = run.single(run.elements())
		run.drop(scaled)
	}
	out := run.new(run.elements())
	run.drop(normed)
	return out
}

// gatedSum is (x.float() + y * gate).type_as(x); raised: y is cast to float too.
func (run wanRun) gatedSum(raised bool) *value {
	upcast := run.single(run.elements())
	var other *value
	if raised {
		other = run.single(run.elements())
	}
	product := run.single(run.elements())
	run.drop(other)
	total := run.single(run.elements())
	run.drop(upcast, product)
	out := run.new(run.elements())
	run.drop(total)
	return out
}

// attention is WanAttnProcessor; keys are of the video itself, turned, or of the text.
func (run wanRun) attention(attn module, keys int64, turn turning) *value {
	query, key, val := run.linear(attn, "to_q", run.rows()), run.linear(attn, "to_k", run.batch*keys), run.linear(attn, "to_v", run.batch*keys)
	run.become(&query, run.rmsNorm(run.elements(), run.dim))
	run.become(&key, run.rmsNorm(run.batch*keys*run.dim, run.dim))
	if turn.dim > 0 {
		run.become(&query, run.halfTurned(run.elements(), turn.width))
		run.become(&key, run.halfTurned(run.elements(), turn.width))
	}
	var seen []*value // results of the picture's keys, if any
	if attn.has("add_k_proj.weight") && run.seen > 0 {
		rows := run.batch * run.seen
		pictureKey, pictureVal := run.linear(attn, "add_k_proj", rows), run.linear(attn, "add_v_proj", rows)
		run.become(&pictureKey, run.rmsNorm(rows*run.dim, run.dim))
		seen = []*value{pictureKey, pictureVal, run.attend(run.batch, attn.headCount(), run.tokens, run.seen, run.dim)}
	}
	out := run.attend(run.batch, attn.headCount(), run.tokens, keys, run.dim)
	if seen != nil {
		run.become(&out, run.new(run.elements()))
	}
	run.drop(seen...)
	projected := run.linear(attn, "to_out.0", run.rows())
	run.drop(out, query, key, val)
	return projected
}

// halfTurned writes the even and then the odd halves of a turned tensor into
// place; products are as wide as the cosines.
func (run wanRun) halfTurned(elements, width int64) *value {
	out := run.new(elements)
	for range 2 {
		first, second := run.alloc(elements/2*width), run.alloc(elements/2*width)
		half := run.alloc(elements / 2 * width)
		run.drop(first, second, half)
	}
	return out
}
