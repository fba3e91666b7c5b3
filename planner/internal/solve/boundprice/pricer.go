package boundprice

import (
	"context"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// pricer finds, for prices of the items, what the dearest set costs that one
// device of a kind can take within any given load. Labels of one state whose
// loads share a cell are joined, keeping the least load and the highest worth:
// the answer is never too low, and too high by little.
type pricer struct {
	*netlist.Frontier
	time  []float64
	cells int
	// worth, load and from are indexed by state, then cell.
	worth, load []float64
	from        []int32
	// trace are, per step, where each label came from: label before × 2,
	// plus 1 if the item was taken in.
	trace  [][]int32
	labels []label
	start  []int32 // first label of each state
}

type label struct{ load, worth float64 }

func newPricer(f *netlist.Frontier, time []float64, cells int) *pricer {
	widest := 0
	for _, n := range f.States {
		widest = max(widest, n)
	}
	c := &pricer{
		Frontier: f, time: time, cells: cells,
		worth: make([]float64, widest*cells), load: make([]float64, widest*cells),
		from: make([]int32, widest*cells), trace: make([][]int32, len(f.Order)),
	}
	for i := range c.worth {
		c.worth[i] = math.Inf(-1)
		c.load[i] = math.Inf(1)
	}
	return c
}

// price returns labels of ascending load and worth: no set of load l has more
// worth than the last label of load up to l. Loads over limit are left out. It
// returns nil where the context ends.
func (c *pricer) price(ctx context.Context, y []float64, limit float64) []label {
	c.labels = append(c.labels[:0], label{})
	c.start = append(c.start[:0], 0, 1)
	scale := float64(c.cells) / limit * (1 - 1e-12)
	for i, v := range c.Order {
		if ctx.Err() != nil {
			return nil
		}
		for s, arcs := range c.Arcs[i] {
			for choice, a := range arcs {
				extra, gain := a.In, 0.0
				if choice == 1 {
					extra += c.time[v]
					gain = y[v]
				}
				base := int(a.To) * c.cells
				for j := c.start[s]; j < c.start[s+1]; j++ {
					load := c.labels[j].load + extra
					if load > limit {
						break
					}
					at := base + min(int(load*scale), c.cells-1)
					if load < c.load[at] {
						c.load[at] = load
					}
					if worth := c.labels[j].worth + gain; worth > c.worth[at] {
						c.worth[at] = worth
						c.from[at] = 2*j + int32(choice)
					}
				}
			}
		}
		c.collect(i)
	}
	return c.labels
}

// collect takes the labels out of the cells that are worth more than all of
// less load, and empties the cells.
func (c *pricer) collect(step int) {
	c.labels, c.start, c.trace[step] = c.labels[:0], c.start[:0], c.trace[step][:0]
	for s := range c.States[step] {
		c.start = append(c.start, int32(len(c.labels)))
		best := math.Inf(-1)
		for at := s * c.cells; at < (s+1)*c.cells; at++ {
			if c.worth[at] > best {
				best = c.worth[at]
				c.labels = append(c.labels, label{c.load[at], best})
				c.trace[step] = append(c.trace[step], c.from[at])
			}
			c.worth[at], c.load[at] = math.Inf(-1), math.Inf(1)
		}
	}
	c.start = append(c.start, int32(len(c.labels)))
}

// set marks the items behind one of the last labels with the given amount.
func (c *pricer) set(last int, mark []float64, amount float64) {
	j := int32(last)
	for i := len(c.Order) - 1; i >= 0; i-- {
		from := c.trace[i][j]
		if from&1 == 1 {
			mark[c.Order[i]] += amount
		}
		j = from >> 1
	}
}
