package dags

import "math/rand/v2"

// sketch is a graph that grows node by node, each after all that it reads.
type sketch struct {
	random *rand.Rand
	// count is how many nodes there are to be: what a shape adds beyond them
	// is left out.
	count int
	edges [][2]int
	roles []role
}

// role is what a node's place in the shape says of its costs, as multiples of
// what is usual.
type role struct{ time, size, transfer float64 }

// usual is a layer like any other, glue one that joins or hands on.
var (
	usual = role{1, 1, 1}
	glue  = role{0.1, 0, 1}
)

// add adds a node that reads others.
func (drawing *sketch) add(as role, reads ...int) int {
	node := len(drawing.roles)
	drawing.roles = append(drawing.roles, as)
	if node >= drawing.count {
		return node
	}
	seen := make(map[int]bool)
	for _, from := range reads {
		if !seen[from] {
			drawing.edges = append(drawing.edges, [2]int{from, node})
		}
		seen[from] = true
	}
	return node
}

// full says that no more nodes are wanted.
func (drawing *sketch) full() bool { return len(drawing.roles) >= drawing.count }

// chain adds some nodes in a row behind another; the last is returned.
func (drawing *sketch) chain(after, length int) int {
	for range length {
		after = drawing.add(usual, after)
	}
	return after
}

// layered has layers of about width nodes. Each reads one to three of the layer
// before, now and then one further back, and every node is read.
func (drawing *sketch) layered(width int) {
	if width == 0 {
		width = 3 + drawing.random.IntN(10)
	}
	var earlier, before []int
	for !drawing.full() {
		layer := make([]int, 0, 2*width)
		for i := range 1 + width/2 + drawing.random.IntN(width) {
			var reads []int
			for range min(len(before), 1+drawing.random.IntN(3)) {
				reads = append(reads, before[drawing.random.IntN(len(before))])
			}
			if i < len(before) {
				reads = append(reads, before[i])
			}
			if len(earlier) > 0 && drawing.random.IntN(10) == 0 {
				reads = append(reads, earlier[drawing.random.IntN(len(earlier))])
			}
			layer = append(layer, drawing.add(usual, reads...))
		}
		earlier, before = before, layer
	}
}

// residual is a row of blocks, each with a way around it; some have a second
// branch, and some ways lead over several blocks.
func (drawing *sketch) residual(int) {
	last := drawing.add(usual)
	sums := []int{last}
	for !drawing.full() {
		reads := []int{last, drawing.chain(last, 2+drawing.random.IntN(4))}
		if drawing.random.IntN(3) == 0 {
			reads = append(reads, drawing.chain(last, 1+drawing.random.IntN(3)))
		}
		if drawing.random.IntN(6) == 0 {
			reads = append(reads, sums[max(0, len(sums)-2-drawing.random.IntN(6))])
		}
		last = drawing.add(glue, reads...)
		sums = append(sums, last)
	}
}

// seriesParallel forks and joins within forks and joins.
func (drawing *sketch) seriesParallel(int) {
	drawing.between(drawing.add(usual), drawing.count-1)
}

// between adds so many nodes behind another, to a last one, which it returns.
func (drawing *sketch) between(after, count int) int {
	switch {
	case count < 4:
		return drawing.chain(after, count)
	case drawing.random.IntN(2) == 0:
		first := 1 + drawing.random.IntN(count-1)
		return drawing.between(drawing.between(after, first), count-first)
	}
	branches := min(2+drawing.random.IntN(5), (count-1)/2)
	left, ends := count-1, []int(nil)
	for branch := range branches {
		share := left / (branches - branch)
		if branch < branches-1 && share > 1 {
			share = 1 + drawing.random.IntN(2*share-1)
		}
		share = min(share, left-(branches-branch-1))
		ends = append(ends, drawing.between(after, share))
		left -= share
	}
	return drawing.add(glue, ends...)
}
