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

func newPricer(frontier *netlist.Frontier, time []float64, cells int) *pricer {
	widest := 0
	for _, count := range frontier.States {
		widest = max(widest, count)
	}
	pricing := &pricer{
		Frontier: frontier, time: time, cells: cells,
		worth: make([]float64, widest*cells), load: make([]float64, widest*cells),
		from: make([]int32, widest*cells), trace: make([][]int32, len(frontier.Order)),
	}
	for i := range pricing.worth {
		pricing.worth[i] = math.Inf(-1)
		pricing.load[i] = math.Inf(1)
	}
	return pricing
}

// price returns labels of ascending load and worth: no set of load l has more
// worth than the last label of load up to l. Loads over limit are left out. It
// returns nil where the context ends.
func (pricing *pricer) price(ctx context.Context, prices []float64, limit float64) []label {
	pricing.labels = append(pricing.labels[:0], label{})
	pricing.start = append(pricing.start[:0], 0, 1)
	scale := float64(pricing.cells) / limit * (1 - 1e-12)
	for i, item := range pricing.Order {
		if ctx.Err() != nil {
			return nil
		}
		for state, arcs := range pricing.Arcs[i] {
			for choice, arc := range arcs {
				extra, gain := arc.In, 0.0
				if choice == 1 {
					extra += pricing.time[item]
					gain = prices[item]
				}
				base := int(arc.To) * pricing.cells
				for j := pricing.start[state]; j < pricing.start[state+1]; j++ {
					load := pricing.labels[j].load + extra
					if load > limit {
						break
					}
					at := base + min(int(load*scale), pricing.cells-1)
					if load < pricing.load[at] {
						pricing.load[at] = load
					}
					if worth := pricing.labels[j].worth + gain; worth > pricing.worth[at] {
						pricing.worth[at] = worth
						pricing.from[at] = 2*j + int32(choice)
					}
				}
			}
		}
		pricing.collect(i)
	}
	return pricing.labels
}

// collect takes the labels out of the cells that are worth more than all of
// less load, and empties the cells.
func (pricing *pricer) collect(step int) {
	pricing.labels, pricing.start, pricing.trace[step] = pricing.labels[:0], pricing.start[:0], pricing.trace[step][:0]
	for state := range pricing.States[step] {
		pricing.start = append(pricing.start, int32(len(pricing.labels)))
		best := math.Inf(-1)
		for at := state * pricing.cells; at < (state+1)*pricing.cells; at++ {
			if pricing.worth[at] > best {
				best = pricing.worth[at]
				pricing.labels = append(pricing.labels, label{pricing.load[at], best})
				pricing.trace[step] = append(pricing.trace[step], pricing.from[at])
			}
			pricing.worth[at], pricing.load[at] = math.Inf(-1), math.Inf(1)
		}
	}
	pricing.start = append(pricing.start, int32(len(pricing.labels)))
}

// set marks the items behind one of the last labels with the given amount.
func (pricing *pricer) set(last int, mark []float64, amount float64) {
	j := int32(last)
	for i := len(pricing.Order) - 1; i >= 0; i-- {
		from := pricing.trace[i][j]
		if from&1 == 1 {
			mark[pricing.Order[i]] += amount
		}
		j = from >> 1
	}
}
