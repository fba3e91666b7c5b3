package boundprice

import "gonum.org/v1/gonum/floats"

// bundle holds the sets that are known and finds the prices nearest to a centre at
// which none of them is worth more than the rent of its kind, though all items
// together are worth more than all rents: the projection of bundle methods (Lemaréchal,
// Nemirovskii and Nesterov, "New variants of bundle methods", Mathematical Programming
// 69, 1995). Prices that the devices refute are among those; each that are not show
// another set.
//
// The quadratic program's dual has a multiplier for each set and is solved by raising
// one after the other, with over-relaxation (Hildreth, "A quadratic programming
// procedure", Naval Research Logistics Quarterly 4, 1957; Mangasarian, "Solution of
// symmetric linear complementarity problems by iterative methods", JOTA 22, 1977), and
// by steps in all that are not zero at once in between (newton.go).
type bundle struct {
	sets  []column
	count []float64 // devices of each kind
	// weight is what a price gives way by, ofRent a rent: a squared scale. The rent of
	// the only kind is what it is.
	weight, ofRent []float64
	// devices are all of them, weights all prices' together, ofCounts the squared length of
	// the row that says what rents come to.
	devices, weights, ofCounts float64
	// price and rent are the point that the multipliers lead to.
	price, rent []float64
	// multiplier is that of each set, square the length of its row; gain that of the
	// total worth.
	multiplier, square []float64
	gain               float64
	busy               []int // sets with a multiplier, or that were worth too much lately
	work               int   // steps of about a nanosecond
}

func newBundle(sets []column, count, scale []float64) *bundle {
	out := &bundle{count: count, weight: make([]float64, len(scale)), ofRent: make([]float64, len(count))}
	for item := range scale {
		out.weight[item] = scale[item] * scale[item]
	}
	out.devices, out.weights = floats.Sum(count), floats.Sum(out.weight)
	if len(count) > 1 {
		for kind, number := range count { // as what a set's prices give way by together
			out.ofRent[kind] = out.weights / out.devices
			out.ofCounts += number * number * out.ofRent[kind]
		}
	}
	for _, set := range sets {
		out.add(set)
	}
	return out
}

// add tells a set.
func (bundle *bundle) add(set column) {
	square := bundle.ofRent[set.kind]
	for _, item := range set.items {
		square += bundle.weight[item]
	}
	bundle.sets, bundle.multiplier, bundle.square = append(bundle.sets, set), append(bundle.multiplier, 0), append(bundle.square, square)
}

// begin puts the centre at prices, and rents that come to 1 for all devices.
func (bundle *bundle) begin(price, rent []float64) {
	bundle.price, bundle.rent = append(bundle.price[:0], price...), append(bundle.rent[:0], rent...)
	clear(bundle.multiplier)
	bundle.gain, bundle.busy = 0, bundle.busy[:0]
}

// The work of a projection: after every sweep over all sets there are some over the
// busy ones.
const (
	mostSweeps = 40
	busySweeps = 15
	relaxation = 1.5
)

// project goes to the nearest prices at which all items are worth so much, to within
// about within of what all devices take. It returns how far from that it ended: where
// it is far there may be none.
func (bundle *bundle) project(worth, within float64) (off float64) {
	for range mostSweeps {
		bundle.busy = bundle.busy[:0]
		for set := range bundle.sets {
			bundle.busy = append(bundle.busy, set)
		}
		off = max(bundle.sweep(), worth-floats.Sum(bundle.price))
		if off < within {
			break
		}
		bundle.total(worth)
		for range busySweeps {
			bundle.sweep()
			bundle.total(worth)
		}
		bundle.newton(worth)
	}
	return off
}

// sweep sets the multipliers of busy sets one after the other, and keeps those that are
// busy. It returns by how much a set was worth more than its rent at the most, for
// all devices.
func (bundle *bundle) sweep() (over float64) {
	busy := bundle.busy[:0]
	for _, at := range bundle.busy {
		set := &bundle.sets[at]
		by := -bundle.rent[set.kind]
		for _, item := range set.items {
			by += bundle.price[item]
		}
		bundle.work += 4 + 2*len(set.items)
		over = max(over, by*bundle.devices)
		if by <= 0 && bundle.multiplier[at] == 0 {
			continue
		}
		busy = append(busy, at)
		bundle.raise(at, max(-bundle.multiplier[at], relaxation*by/bundle.square[at]))
	}
	bundle.busy = busy
	return over
}

// raise moves the point as a set's multiplier says.
func (bundle *bundle) raise(at int, by float64) {
	set := &bundle.sets[at]
	bundle.multiplier[at] += by
	for _, item := range set.items {
		bundle.price[item] -= by * bundle.weight[item]
	}
	bundle.rent[set.kind] += by * bundle.ofRent[set.kind]
	bundle.work += 2 * len(set.items)
}

// total makes the items worth so much, and the rents come to 1.
func (bundle *bundle) total(worth float64) {
	bundle.lift(max(-bundle.gain, (worth-floats.Sum(bundle.price))/bundle.weights))
	bundle.level(1 - floats.Dot(bundle.rent, bundle.count))
	bundle.work += 3 * len(bundle.price)
}

// lift moves the point as the multiplier of the total worth says.
func (bundle *bundle) lift(by float64) {
	bundle.gain += by
	floats.AddScaled(bundle.price, by, bundle.weight)
}

// level adds so much to what all rents come to.
func (bundle *bundle) level(by float64) {
	if bundle.ofCounts == 0 {
		return
	}
	for kind, count := range bundle.count {
		bundle.rent[kind] += by / bundle.ofCounts * count * bundle.ofRent[kind]
	}
}
