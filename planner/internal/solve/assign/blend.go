package assign

// blend turns many kinds of items into few rows of a program. Some kinds are
// nodes, a row each; any other counts as a part of the node above it in size and
// a part of the one below, as its size is between them. What the program then
// finds are prices that are straight lines between the nodes: near the best, as
// items of near sizes are worth about the same, and found far sooner. Where all
// kinds are nodes it is the program itself.
type blend struct {
	at    []int     // the kind of each node
	asked []float64 // items of each node, in parts
	parts [][]entry // of each kind
}

// Nodes of a program, at most: at first, and where that does not refute.
const coarse, fine = 40, 120

// newBlend spreads nodes evenly over the items.
func newBlend(it *itemTable, nodes int) blend {
	kinds := len(it.size)
	mix := blend{parts: make([][]entry, kinds)}
	items, seen := 0, 0
	for _, count := range it.count {
		items += count
	}
	for kind, count := range it.count {
		if kinds <= nodes || kind == 0 || kind == kinds-1 || seen*(nodes-2)/max(items, 1) < (seen+count)*(nodes-2)/max(items, 1) {
			mix.at = append(mix.at, kind)
		}
		seen += count
	}
	mix.asked = make([]float64, len(mix.at))
	above := 0
	for kind := range kinds {
		if above+1 < len(mix.at) && mix.at[above+1] == kind {
			above++
		}
		mix.parts[kind] = []entry{{above, 1}}
		if kind > mix.at[above] {
			high, low := it.size[mix.at[above]], it.size[mix.at[above+1]]
			part := float64(high-it.size[kind]) / float64(high-low)
			mix.parts[kind] = []entry{{above, 1 - part}, {above + 1, part}}
		}
		for _, part := range mix.parts[kind] {
			mix.asked[part.row] += float64(it.count[kind]) * part.value
		}
	}
	return mix
}

func (mix *blend) nodes() int { return len(mix.at) }

// entries are those of a set, in the rows of nodes.
func (mix *blend) entries(items []taken) []entry {
	var out []entry
	for _, take := range items {
		for _, part := range mix.parts[take.kind] {
			out = append(out, entry{part.row, float64(take.count) * part.value})
		}
	}
	return out
}
