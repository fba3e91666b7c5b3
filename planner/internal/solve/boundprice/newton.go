package boundprice

import "gonum.org/v1/gonum/mat"

// newton is a step in the multipliers of all sets that have one, and of the total worth,
// to where these sets are worth their rents, or until one is zero. Single multipliers
// creep where many sets are alike; together they are a system of linear equations
// (subspace minimization: Moré and Toraldo, "On the solution of large quadratic
// programming problems with bound constraints", SIAM Journal on Optimization 1, 1991).
// What it does not do the sweeps do.
func (bundle *bundle) newton(worth float64) {
	const steps = 3
	for range steps {
		rows := bundle.rows()
		if len(rows) == 0 || len(rows) > mostRows {
			return
		}
		gram, right := bundle.system(rows, worth)
		var factors mat.Cholesky
		var step mat.VecDense
		if !factors.Factorize(gram) || factors.SolveVecTo(&step, right) != nil {
			return
		}
		part := 1.0
		for i, row := range rows {
			if by := step.AtVec(i); row != ofRents && by < 0 {
				part = min(part, bundle.at(row)/-by)
			}
		}
		for i, row := range rows {
			bundle.along(row, part*step.AtVec(i))
		}
		if part == 1 {
			return
		}
	}
}

// mostRows bounds the system: the work is its third power.
const mostRows = 500

// Rows that are no set's.
const (
	ofWorth = -1 - iota // − Σ price ≤ − worth
	ofRents             // Σ count × rent = 1
)

// rows are those whose multipliers the step changes.
func (bundle *bundle) rows() (rows []int) {
	for _, at := range bundle.busy {
		if bundle.multiplier[at] > 0 {
			rows = append(rows, at)
		}
	}
	if bundle.gain > 0 {
		rows = append(rows, ofWorth)
	}
	if len(bundle.count) > 1 {
		rows = append(rows, ofRents)
	}
	return rows
}

// at is a row's multiplier.
func (bundle *bundle) at(row int) float64 {
	if row == ofWorth {
		return bundle.gain
	}
	return bundle.multiplier[row]
}

// along moves the point by a row's multiplier.
func (bundle *bundle) along(row int, by float64) {
	switch row {
	case ofWorth:
		bundle.lift(max(-bundle.gain, by))
	case ofRents:
		bundle.level(-by * bundle.ofCounts)
	default:
		bundle.raise(row, max(-bundle.multiplier[row], by))
	}
}

// system is the rows' products, each price and rent by what it gives way by, and by
// how much the point violates each.
func (bundle *bundle) system(rows []int, worth float64) (gram *mat.SymDense, over *mat.VecDense) {
	const ridge = 1e-10 // rows may depend on each other
	gram, over = mat.NewSymDense(len(rows), nil), mat.NewVecDense(len(rows), nil)
	price, rent := make([]float64, len(bundle.price)), make([]float64, len(bundle.rent))
	for i, row := range rows {
		clear(price)
		clear(rent)
		over.SetVec(i, -bundle.bound(row, worth))
		bundle.each(row, func(item int, value float64) {
			price[item] = value * bundle.weight[item]
			over.SetVec(i, over.AtVec(i)+value*bundle.price[item])
		}, func(kind int, value float64) {
			rent[kind] = value * bundle.ofRent[kind]
			over.SetVec(i, over.AtVec(i)+value*bundle.rent[kind])
		})
		for j := i; j < len(rows); j++ {
			product := 0.0
			bundle.each(rows[j], func(item int, value float64) { product += value * price[item] }, func(kind int, value float64) { product += value * rent[kind] })
			if i == j {
				product *= 1 + ridge
			}
			gram.SetSym(i, j, product)
		}
	}
	bundle.work += len(rows) * len(rows) * (len(rows)/6 + 2*len(price)/max(1, len(bundle.count)))
	return gram, over
}

// bound is what a row may come to.
func (bundle *bundle) bound(row int, worth float64) float64 {
	switch row {
	case ofWorth:
		return -worth
	case ofRents:
		return 1
	default:
		return 0
	}
}

// each calls with the entries of a row.
func (bundle *bundle) each(row int, ofPrice, ofRent func(at int, value float64)) {
	switch row {
	case ofWorth:
		for item := range bundle.price {
			ofPrice(item, -1)
		}
	case ofRents:
		for kind, count := range bundle.count {
			ofRent(kind, count)
		}
	default:
		for _, item := range bundle.sets[row].items {
			ofPrice(int(item), 1)
		}
		ofRent(bundle.sets[row].kind, -1)
	}
}
