package dags

// The shapes that are taken from models.

// towers are rows of nodes side by side, as of a model with several inputs,
// between one node that all begin at and one that all end in. A node in fifty
// reads the tower beside it too.
func (drawing *sketch) towers(width int) {
	if width == 0 {
		width = 2 + drawing.random.IntN(7)
	}
	first := drawing.add(usual)
	var ends, beside []int
	for tower := range width {
		length := (drawing.count-2-tower-1)/width + 1
		last, row := first, make([]int, 0, length)
		for i := range length {
			reads := []int{last}
			if 0 < i && i < len(beside) && drawing.random.IntN(50) == 0 {
				reads = append(reads, beside[i-1])
			}
			last = drawing.add(usual, reads...)
			row = append(row, last)
		}
		ends, beside = append(ends, last), row
	}
	drawing.add(usual, ends...)
}

// uNet goes down some levels and up again, each block on the way up reading its
// like on the way down. With each level the tensors halve and the weights
// double. All blocks read one node, the step of the diffusion.
func (drawing *sketch) uNet(int) {
	const perBlock = 5
	levels := 3 + drawing.random.IntN(3)
	blocks := max(1, drawing.count/(2*levels*perBlock))
	step := drawing.add(role{0.2, 0.2, 0.1})
	last := drawing.add(usual)
	var skips []int
	at := func(level int) role { return role{1, 0.5 * float64(int(1)<<level), 2 / float64(int(1)<<level)} }
	block := func(as role) {
		first := drawing.add(as, last, step)
		second := drawing.add(as, first)
		reads := []int{last, second}
		if drawing.random.IntN(2) == 0 {
			reads = append(reads, drawing.add(as, last))
		}
		last = drawing.add(role{0.1, 0, as.transfer}, reads...)
	}
	for level := range levels {
		for range blocks {
			block(at(level))
			skips = append(skips, last)
		}
	}
	for i := len(skips) - 1; i >= 0; i-- {
		as := at(i / blocks)
		last = drawing.add(role{0.1, 0, as.transfer}, last, skips[i])
		block(as)
	}
	for !drawing.full() {
		block(at(0))
	}
}

// experts are blocks of attention and of a layer of experts: a router that each
// expert reads, and a sum of what they say and of what went around them. An
// expert's weights are many and its time is as its share of the tokens is.
func (drawing *sketch) experts(width int) {
	if width == 0 {
		width = []int{4, 8, 16, 32}[drawing.random.IntN(4)]
	}
	width = min(width, max(2, drawing.count/8))
	last := drawing.add(usual)
	for !drawing.full() {
		attended := drawing.add(glue, last, drawing.chain(last, 2+drawing.random.IntN(3)))
		router := drawing.add(role{0.2, 0.05, 1}, attended)
		reads := []int{attended}
		for range width {
			share := 0.3 + drawing.random.ExpFloat64()
			reads = append(reads, drawing.add(role{4 * share / float64(width) * 2, 2, share}, router))
		}
		last = drawing.add(glue, reads...)
	}
}
