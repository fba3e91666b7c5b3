package chain_test

import (
	"math/rand/v2"

	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// shape is the form of random problems.
type shape struct {
	items, devices, groups int // at most
	cost                   int64
	timeline               bool // the peak is over a timeline, not a sum
	perDevice              bool // an item's cost depends on the device
	pins                   bool
	messages               bool // runs pay for messages at their ends
	filled                 bool // no run is empty
}

// random returns a problem of the shape. Half of all problems have equal budgets, and some items
// and groups are empty.
func random(rng *rand.Rand, s shape) chain.Problem {
	n, k := rng.IntN(s.items+1), 1+rng.IntN(s.devices)
	p := chain.Problem{Items: n, Groups: rng.IntN(s.groups + 1), Budgets: make([]int64, k)}
	same := 1 + rng.Int64N(3*s.cost)
	for d := range p.Budgets {
		p.Budgets[d] = same
	}
	if rng.IntN(2) == 0 {
		for d := range p.Budgets {
			p.Budgets[d] = 1 + rng.Int64N(3*s.cost)
		}
	}
	group := make([]int64, p.Groups)
	for g := range group {
		group[g] = rng.Int64N(3 * s.cost)
	}
	sample := func() []int64 {
		c := make([]int64, n)
		for i := range c {
			if rng.IntN(5) > 0 {
				c[i] = rng.Int64N(s.cost)
			}
		}
		return c
	}
	factor := make([]int64, k) // micro-batches in flight, as in 1F1B
	for d := range factor {
		factor[d] = 1
		if s.perDevice {
			factor[d] = int64(1 + rng.IntN(k))
		}
	}
	if s.timeline {
		p.Peak = timeline(sample(), sample(), sample(), sample(), group, factor)
	} else {
		p.Additive = true
		p.Peak = additive(sample(), sample(), group, factor)
	}
	if s.messages {
		messages(rng, &p, sample(), sample())
		p.Filled = s.filled && p.Groups == 0
	}
	if s.pins {
		pin(rng, &p)
	}
	return p
}

// messages adds the bytes received before an item and sent after it, so a wider run can have a
// smaller peak. Floor is as large as possible, as small as possible, or between.
func messages(rng *rand.Rand, p *chain.Problem, in, out []int64) {
	inside, n, tight := p.Peak, p.Items, rng.IntN(3)
	p.Additive = false
	p.Peak = func(d, a, b int, groups uint64) int64 {
		peak := inside(d, a, b, groups)
		if a < b && a > 0 {
			peak += in[a]
		}
		if a < b && b < n {
			peak += out[b-1]
		}
		return peak
	}
	p.Floor = func(d, a, b int, groups uint64) int64 {
		if a == b || tight == 0 {
			return inside(d, a, b, groups)
		}
		least := p.Peak(d, a, b, groups)
		for from := a; from >= 0; from-- {
			for to := b; to <= n; to++ {
				least = min(least, p.Peak(d, from, to, groups))
			}
		}
		if tight == 1 {
			least = (least + inside(d, a, b, groups)) / 2
		}
		return least
	}
}

func pin(rng *rand.Rand, p *chain.Problem) {
	k := len(p.Budgets)
	p.Pins, p.GroupPins, p.Follow = make([]int, p.Items), make([]int, p.Groups), make([][]int, p.Groups)
	for i := range p.Pins {
		p.Pins[i] = -1
		if rng.IntN(6) == 0 {
			// Near the diagonal, so that not all pins conflict.
			p.Pins[i] = min(k-1, max(0, i*k/p.Items+rng.IntN(3)-1))
		}
	}
	for g := range p.GroupPins {
		p.GroupPins[g] = -1
		if rng.IntN(4) == 0 {
			p.GroupPins[g] = rng.IntN(k)
		}
		for range rng.IntN(3) {
			if p.Items > 0 {
				p.Follow[g] = append(p.Follow[g], rng.IntN(p.Items))
			}
		}
	}
}

func prefix(c []int64) []int64 {
	sum := make([]int64, len(c)+1)
	for i, x := range c {
		sum[i+1] = sum[i] + x
	}
	return sum
}

func sumOf(groups uint64, size []int64) (sum int64) {
	for g, x := range size {
		if groups>>g&1 != 0 {
			sum += x
		}
	}
	return sum
}

// additive returns static(a,b) + factor*saved(a,b) + groups.
func additive(static, saved, group, factor []int64) func(d, a, b int, groups uint64) int64 {
	st, sv := prefix(static), prefix(saved)
	return func(d, a, b int, groups uint64) int64 {
		return st[b] - st[a] + factor[d]*(sv[b]-sv[a]) + sumOf(groups, group)
	}
}

// timeline returns static(a,b) plus the peak of a backward pass. At item l the pass holds the saved
// bytes of items a..l, the gradients of l..b, and l's transient. Each call is a loop, as these
// problems are small.
func timeline(static, saved, grads, transient, group, factor []int64) func(d, a, b int, groups uint64) int64 {
	st, sv, gr := prefix(static), prefix(saved), prefix(grads)
	return func(d, a, b int, groups uint64) int64 {
		top := int64(0)
		for l := a; l < b; l++ {
			top = max(top, factor[d]*(sv[l+1]-sv[a])+gr[b]-gr[l]+transient[l])
		}
		// Groups share one buffer, so their part is not a sum either.
		return max(st[b]-st[a]+top+sumOf(groups, group), 2*sumOf(groups, group))
	}
}
