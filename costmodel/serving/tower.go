package serving

// input is a value from the host.
func (*tower) input(size int64) *value {
	return &value{size: size, shape: [3]int64{size, 1, 1}, copied: true}
}

// rows is a new value of a number of rows.
func rowsOf(width, count int64, from ...*value) *value {
	return made([3]int64{width, count, 1}, from...)
}

// half returns a value in fp16.
func half(of *value) *value {
	of.size /= 2
	return of
}

// same is a view without another shape.
func same(of *value) *value { return viewed(of.shape, of) }

// conv is a convolution over patches (ggml.c, ggml_conv_2d): columns, their product, and a copy.
func (tower *tower) conv() *value {
	const colours, fp32 = 3, 4
	columns := rowsOf(colours*tower.patch*tower.patch, tower.n, outside, tower.raw)
	columns.size = columns.size / fp32 * tower.kernelSize
	return rowsOf(tower.width, tower.n, same(rowsOf(tower.n, tower.width, same(columns), outside)))
}

// patches are the hidden states before the first block (clip.cpp, build_inp).
func (tower *tower) patches() *value {
	return over(rowsOf(tower.width, tower.n, same(tower.conv())), outside)
}

// norm has no other value for a weight and a bias: they take the place of its result.
func (tower *tower) norm(of *value) *value {
	result := made(of.shape, of)
	result.over = tower.rms
	return result
}

// feedForward is build_ffn of clip.cpp.
func (tower *tower) feedForward(of *value, wide, width int64, gated bool) *value {
	count := of.shape[1]
	up := rowsOf(wide, count, outside, of)
	if gated {
		return rowsOf(width, count, outside, rowsOf(wide, count, rowsOf(wide, count, outside, of), up))
	}
	return rowsOf(width, count, outside, over(up))
}

// turns rotates queries and keys; nil: positions are in the hidden state.
type turns func(of *value) *value

// layers are all blocks on so many positions (clip.cpp, build_vit).
func (tower *tower) layers(hidden *value, count int64, turn turns) *value {
	if tower.pre {
		hidden = tower.norm(hidden)
	}
	for range tower.blocks {
		hidden = tower.layer(hidden, count, turn, nil)
	}
	if tower.post {
		hidden = tower.norm(hidden)
	}
	return hidden
}

// layer is one block. mask hides positions outside a window.
func (tower *tower) layer(hidden *value, count int64, turn turns, mask *value) *value {
	width := tower.width
	heads := [3]int64{width / tower.heads, tower.heads, count}
	normed := tower.norm(hidden)
	var q, k, v *value
	if tower.joined {
		whole := rowsOf(3*width, count, outside, normed)
		q, k, v = viewed(heads, whole), viewed(heads, whole), viewed(heads, whole)
		for _, part := range []*value{q, k, v} {
			part.size = whole.size / 3
		}
	} else {
		q, k, v = viewed(heads, rowsOf(width, count, outside, normed)), viewed(heads, rowsOf(width, count, outside, normed)), viewed(heads, rowsOf(width, count, outside, normed))
	}
	if turn != nil {
		q, k = turn(q), turn(k)
	}
	tower.expand(q)
	tower.expand(k)
	tower.expand(v)
	middle := over(rowsOf(width, count, outside, tower.attend(heads, q, k, v, mask)), hidden)
	return over(middle, tower.feedForward(tower.norm(middle), tower.feed, width, tower.gated))
}

// attend is build_attn of clip.cpp.
func (tower *tower) attend(heads [3]int64, q, k, v, mask *value) *value {
	count := heads[2]
	if tower.flash {
		from := []*value{same(q), half(made(heads, same(k))), half(made(heads, same(v)))}
		if mask != nil {
			from = append(from, half(rowsOf(count, count, mask)))
		}
		return viewed([3]int64{tower.width, count, 1}, made(heads, from...))
	}
	turned := made(heads, same(v))
	scores := made([3]int64{count, count, heads[1]}, same(k), same(q))
	if mask != nil {
		scores = over(scores, mask)
	} else {
		scores = over(scores)
	}
	return rowsOf(tower.width, count, same(made(heads, turned, scores)))
}

func (tower *tower) gemma3() *value {
	hidden := tower.layers(same(over(tower.patches(), outside)), tower.n, nil)
	count := tower.n / (tower.merge * tower.merge)
	copied := rowsOf(tower.n, tower.width, same(hidden))
	pooled := rowsOf(count, tower.width, copied)
	joined := over(rowsOf(tower.width, count, same(pooled)))
	return rowsOf(tower.text, count, rowsOf(tower.width, tower.text, outside), joined)
}

// shuffled joins the patches of a square (clip.cpp, build_patch_merge_permute).
func (tower *tower) shuffled(hidden *value) *value {
	square := tower.merge * tower.merge
	first := rowsOf(tower.width*square, tower.n/square, same(hidden))
	return rowsOf(tower.width*square, tower.n/square, same(first))
}

func (tower *tower) idefics3() *value {
	hidden := tower.shuffled(tower.layers(same(over(tower.patches(), outside)), tower.n, nil))
	return rowsOf(tower.text, hidden.shape[1], outside, hidden)
}

func (tower *tower) internVL() *value {
	count := tower.n + 1
	joined := rowsOf(tower.width, count, tower.patches(), rowsOf(tower.width, 1, outside))
	hidden := tower.layers(same(over(joined, outside)), count, nil)
	hidden = tower.shuffled(rowsOf(tower.width, tower.n, same(hidden)))
	normed := made(hidden.shape, hidden)
	return tower.feedForward(normed, tower.text, tower.text, false)
}

func (tower *tower) llava() *value {
	const index = 4
	count := tower.n
	hidden := tower.patches()
	if tower.classed() {
		count++
		hidden = rowsOf(tower.width, count, hidden, outside)
	}
	hidden = over(hidden, rowsOf(tower.width, count, outside, tower.input(index*count)))
	tower.blocks-- // the last one is not used (models/llava.cpp, max_feature_layer)
	hidden = tower.layers(hidden, count, nil)
	tower.blocks++
	chosen := rowsOf(tower.width, tower.n, same(hidden), tower.input(index*tower.n))
	return tower.feedForward(chosen, tower.text, tower.text, false)
}

func (tower *tower) pixtral() *value {
	const index = 4
	rows, columns := tower.input(index*tower.n), tower.input(index*tower.n)
	turn := func(of *value) *value { return over(over(of, rows), columns) }
	hidden := same(tower.layers(same(tower.patches()), tower.n, turn))
	side := tower.grid / tower.merge
	if tower.merge > 1 {
		square := tower.merge * tower.merge
		copied := rowsOf(tower.n, tower.width, same(over(hidden)))
		unfolded := rowsOf(tower.width*square, tower.n/square, same(copied), copied)
		hidden = rowsOf(tower.width, tower.n/square, outside, same(unfolded))
	}
	hidden = tower.feedForward(hidden, tower.text, tower.text, false)
	tower.leaf = rowsOf(tower.text, side)
	tower.leaf.copied = true
	return same(rowsOf(tower.text, (side+1)*side, same(hidden), over(over(tower.leaf), outside)))
}

// merged are the hidden states of Qwen's encoders: patches of a square lie together.
func (tower *tower) merged() *value {
	first := rowsOf(tower.width, tower.n, same(over(tower.conv(), tower.conv())))
	return rowsOf(tower.width, tower.n, same(first))
}

func (tower *tower) qwen2VL() *value {
	const index, fp32, square = 4, 4, 4
	positions := tower.input(index * square * tower.n)
	turn := func(of *value) *value { return over(of, positions) }
	hidden := tower.merged()
	var mask *value
	if tower.window > 0 {
		mask = tower.input(fp32 * tower.n * tower.n)
		mask.shape = [3]int64{tower.n, tower.n, 1}
		if tower.flash {
			mask = half(rowsOf(tower.n, tower.n, mask))
		}
		hidden = same(rowsOf(square*tower.width, tower.n/square, same(hidden), tower.input(index*tower.n/square)))
	}
	for block := range tower.blocks {
		of := mask
		if tower.window > 0 && (block+1)%tower.window == 0 {
			of = nil
		}
		hidden = tower.layer(hidden, tower.n, turn, of)
	}
	if tower.post {
		hidden = tower.norm(hidden)
	}
	result := tower.feedForward(viewed([3]int64{square * tower.width, tower.n / square, 1}, hidden), square*tower.width, tower.text, false)
	if tower.window > 0 {
		result = rowsOf(tower.text, tower.n/square, same(result), tower.input(index*tower.n/square))
	}
	return result
}

func (tower *tower) qwen3VL() *value {
	const index, square = 4, 4
	positions := tower.input(index * square * tower.n)
	turn := func(of *value) *value { return over(of, positions) }
	learned := outside
	if !tower.fits() {
		learned = rowsOf(tower.width, tower.n, same(rowsOf(tower.n, tower.width, outside)))
	}
	if learned == outside {
		learned = rowsOf(tower.width, tower.n, outside)
	} else {
		learned = rowsOf(tower.width, tower.n, learned)
	}
	learned = rowsOf(tower.width, tower.n, same(learned))
	hidden := over(over(tower.merged(), outside), learned)
	joined := [3]int64{square * tower.width, tower.n / square, 1}
	var features *value
	for block := range tower.blocks {
		hidden = tower.layer(hidden, tower.n, turn, nil)
		if !tower.deep[block] {
			continue
		}
		found := tower.feedForward(tower.norm(viewed(joined, hidden)), square*tower.width, tower.text, false)
		if features != nil {
			found = rowsOf(features.shape[0]+tower.text, joined[1], features, found)
		}
		features = found
	}
	if tower.post {
		hidden = tower.norm(hidden)
	}
	result := tower.feedForward(viewed(joined, hidden), square*tower.width, tower.text, false)
	if features != nil {
		result = rowsOf(result.shape[0]+features.shape[0], joined[1], result, features)
	}
	return result
}
