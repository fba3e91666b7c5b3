package partition

import (
	"cmp"
	"math"
	"slices"
)

// rented sets the rent of a byte on one kind, −1: on none, so that the bound
// is highest for these prices of time. Items move from that kind to the next
// cheapest as the rent rises, those first that lose least a byte, and the bound
// is highest where what stays just fits: the fractional knapsack (Dantzig,
// Operations Research 5, 1957).
func (in *instance) rented(per []float64, kind int, sizes []float64) prices {
	p := prices{per: per, rent: make([]float64, len(per)), work: make([]float64, len(in.nodes))}
	here, elsewhere := make([]float64, len(in.nodes)), p.work
	for i := range elsewhere {
		here[i], elsewhere[i] = math.Inf(1), math.Inf(1)
		for k, price := range per {
			t := in.time[k][i]
			switch {
			case math.IsInf(price, 1) || math.IsInf(t, 1):
			case k == kind:
				here[i] = price * t
			default:
				elsewhere[i] = min(elsewhere[i], price*t)
			}
		}
	}
	if kind >= 0 {
		p.rent[kind] = rentOf(in.p.Kinds[kind].capacity(), sizes, here, elsewhere)
		for i := range p.work {
			p.work[i] = min(elsewhere[i], here[i]+p.rent[kind]*sizes[i])
		}
		p.bound = -p.rent[kind] * in.p.Kinds[kind].capacity()
	}
	p.bound += sum(p.work) * (1 - 1e-12) // the difference of sums may be small
	return p
}

// rentOf is the least at which the items that stay on a kind fit it together;
// 0 where some cannot be elsewhere and do not fit by themselves.
func rentOf(room float64, sizes, here, elsewhere []float64) float64 {
	size := 0.0
	var stay []int
	for i := range here {
		if sizes[i] > 0 && here[i] < elsewhere[i] {
			size += sizes[i]
			stay = append(stay, i)
		}
	}
	loss := func(i int) float64 { return (elsewhere[i] - here[i]) / sizes[i] }
	slices.SortFunc(stay, func(a, b int) int { return cmp.Compare(loss(a), loss(b)) })
	rent := 0.0
	for _, i := range stay {
		if size <= room || math.IsInf(loss(i), 1) {
			break
		}
		rent = loss(i)
		size -= sizes[i]
	}
	return rent
}
