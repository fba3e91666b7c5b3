package forward

// video are the sizes of a transformer of videos whose text stands apart.
type video struct {
	batch, tokens, text int64
	dim                 int64
	seen                int64 // tokens of the picture that the video begins with
}

func (sizes video) rows() int64     { return sizes.batch * sizes.tokens }
func (sizes video) elements() int64 { return sizes.rows() * sizes.dim }

// latentFrames is the number of frames that an autoencoder leaves of so many
// (the first alone, then four by four).
func latentFrames(frames int64) int64 { return (frames-1)/4 + 1 }

// wan is WanTransformer3DModel.forward (transformer_wan.py).
func wan(tape *tape, root module, call Call) {
	channels := root.inward("patch_embedding")
	deep, high, wide := root.side("patch_embedding", 2), root.side("patch_embedding", 3), root.side("patch_embedding", 4)
	frames, height, width := latentFrames(call.Frames), call.Height/pixels, call.Width/pixels
	sizes := video{batch: call.Batch, tokens: call.share(frames / deep * (height / high) * (width / wide)), text: call.Text, dim: root.out("patch_embedding")}
	inputs := []*value{
		tape.new(sizes.batch * channels * frames * height * width), tape.single(sizes.batch),
		tape.new(sizes.batch * sizes.text * root.inward("condition_embedder.text_embedder.linear_1")),
	}
	turn := root.turning("rope.freqs_cos", tape.width)
	// GPUs that share the tokens embed all of them, and take views of their part
	// (xfuser: xFuserWanTransformer3DWrapper.forward).
	all := sizes.tokens * tape.gpus
	cosine, sine := tape.alloc(all*turn.dim*turn.width), tape.alloc(all*turn.dim*turn.width)
	patches := tape.conv(root, "patch_embedding", sizes.batch*all)
	hidden := tape.new(sizes.batch * all * sizes.dim)
	tape.drop(patches)
	embed := root.in("condition_embedder")
	temb := tape.timestepEmbedding(embed.in("time_embedder"), sizes.batch)
	active := tape.new(sizes.batch * sizes.dim)
	steps := tape.linear(embed, "time_proj", sizes.batch)
	tape.drop(active)
	text := tape.timestepEmbedding(embed.in("text_embedder"), sizes.batch*sizes.text)
	if seen := tape.wanSeen(embed.in("image_embedder"), &sizes); seen != nil {
		inputs = append(inputs, seen...)
		tape.become(&text, tape.new(sizes.batch*(sizes.text+sizes.seen)*sizes.dim))
	}
	tape.blocks(root, "blocks", func(block module) { tape.wanBlock(block, sizes, turn, &hidden) })
	normed := tape.singleNorm(sizes, true)
	tape.become(&hidden, normed)
	tape.become(&hidden, tape.linear(root, "proj_out", sizes.rows()))
	tape.drop(tape.new(sizes.rows()*root.out("proj_out")), hidden, text, temb, steps, cosine, sine)
	tape.drop(inputs...)
}

// wanSeen is WanImageEmbedding of what the vision model saw: 257 tokens a
// picture, or as many as there are places for; the embedded ones are joined with
// the text's.
func (tape *tape) wanSeen(mod module, sizes *video) []*value {
	if !mod.has("norm1.weight") {
		return nil
	}
	sizes.seen = 257
	width := mod.inward("ff.net.0.proj")
	if places := mod.shapes[mod.in("pos_embed").path]; len(places) == 3 {
		sizes.seen = places[1]
	}
	rows := sizes.batch * sizes.seen
	input := tape.new(rows * width)
	hidden := tape.single(rows * width)
	tape.become(&hidden, tape.new(rows*width))
	tape.become(&hidden, tape.feedForward(mod.in("ff"), rows, false))
	tape.become(&hidden, tape.new(rows*sizes.dim))
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

// wanBlock is WanTransformerBlock, whose residual stream is added to in single
// precision.
func (tape *tape) wanBlock(block module, sizes video, turn turning, hidden **value) {
	steps := tape.single(6 * sizes.batch * sizes.dim)
	normed := tape.singleNorm(sizes, true)
	attended := tape.wanAttention(block.in("attn1"), sizes, sizes.tokens, turn)
	stream := tape.gatedSum(sizes, false)
	tape.become(&normed, tape.singleNorm(sizes, false))
	tape.become(&attended, tape.wanAttention(block.in("attn2"), sizes, sizes.text, turning{}))
	tape.become(&stream, tape.new(sizes.elements()))
	tape.become(&normed, tape.singleNorm(sizes, true))
	result := tape.feedForward(block.in("ffn"), sizes.rows(), false)
	tape.become(&stream, tape.gatedSum(sizes, true))
	tape.drop(steps, normed, attended, result)
	tape.become(hidden, stream)
}

// singleNorm is (norm(x.float()) * (1 + scale) + shift).type_as(x), or the norm
// alone.
func (tape *tape) singleNorm(sizes video, modulated bool) *value {
	upcast := tape.single(sizes.elements())
	normed := tape.single(sizes.elements())
	tape.drop(tape.single(sizes.rows()), upcast)
	if modulated {
		scaled := tape.single(sizes.elements())
		tape.drop(normed)
		normed = tape.single(sizes.elements())
		tape.drop(scaled)
	}
	out := tape.new(sizes.elements())
	tape.drop(normed)
	return out
}

// gatedSum is (x.float() + y * gate).type_as(x); y is raised too where raised.
func (tape *tape) gatedSum(sizes video, raised bool) *value {
	upcast := tape.single(sizes.elements())
	var other *value
	if raised {
		other = tape.single(sizes.elements())
	}
	product := tape.single(sizes.elements())
	tape.drop(other)
	total := tape.single(sizes.elements())
	tape.drop(upcast, product)
	out := tape.new(sizes.elements())
	tape.drop(total)
	return out
}

// wanAttention is WanAttnProcessor; keys are of the video itself, turned, or of
// the text.
func (tape *tape) wanAttention(attn module, sizes video, keys int64, turn turning) *value {
	query, key, val := tape.linear(attn, "to_q", sizes.rows()), tape.linear(attn, "to_k", sizes.batch*keys), tape.linear(attn, "to_v", sizes.batch*keys)
	tape.become(&query, tape.rmsNorm(sizes.elements(), sizes.dim))
	tape.become(&key, tape.rmsNorm(sizes.batch*keys*sizes.dim, sizes.dim))
	if turn.dim > 0 {
		tape.become(&query, tape.halfTurned(sizes.elements(), turn.width))
		tape.become(&key, tape.halfTurned(sizes.elements(), turn.width))
	}
	var seen []*value // what the picture's keys give, beside the text's
	if attn.has("add_k_proj.weight") && sizes.seen > 0 {
		rows := sizes.batch * sizes.seen
		pictureKey, pictureVal := tape.linear(attn, "add_k_proj", rows), tape.linear(attn, "add_v_proj", rows)
		tape.become(&pictureKey, tape.rmsNorm(rows*sizes.dim, sizes.dim))
		seen = []*value{pictureKey, pictureVal, tape.attend(sizes.batch, attn.headCount(), sizes.tokens, sizes.seen, sizes.dim)}
	}
	out := tape.attend(sizes.batch, attn.headCount(), sizes.tokens, keys, sizes.dim)
	if seen != nil {
		tape.become(&out, tape.new(sizes.elements()))
	}
	tape.drop(seen...)
	projected := tape.linear(attn, "to_out.0", sizes.rows())
	tape.drop(out, query, key, val)
	return projected
}

// halfTurned writes the even and then the odd halves of a turned tensor into
// place; products are as wide as the cosines.
func (tape *tape) halfTurned(elements, width int64) *value {
	out := tape.new(elements)
	for range 2 {
		first, second := tape.alloc(elements/2*width), tape.alloc(elements/2*width)
		half := tape.alloc(elements / 2 * width)
		tape.drop(first, second, half)
	}
	return out
}
