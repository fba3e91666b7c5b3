package boundprice

import (
	"math/rand/v2"
	"slices"
)

// master is the linear program over the sets that are known: the fleet's least
// size, as a multiple of the devices there are, that covers every item once:
//
//	min θ  subject to  Σ x(set) = 1 for each item, Σ x(set of kind k) ≤ θ n(k).
//
// Its duals are prices of the items and rents of the kinds; a set that is worth
// more than its kind's rent makes θ smaller. Prices are kept within a box around
// a centre (Marsten, Hogan and Blankenship, "The boxstep method", Operations
// Research 23, 1975), which a column for each side of each item does. It is
// solved by the primal simplex method with an explicit inverse.
type master struct {
	items, rows int
	most        float64   // load of a set; 0: any
	count       []float64 // devices of each kind
	sets        []column
	// low and high are the box of each price.
	low, high []float64
	// basis is the column of each row: a set's number, or one of the codes
	// below the sets: see cost.
	basis   []int
	inBasis []bool // of the sets
	inverse []float64
	level   []float64 // of the basic columns
	right   []float64
	dual    []float64
	pivots  int
	work    []float64
}

type column struct {
	items []int32
	kind  int
	load  float64
}

// Codes of the columns that are no sets: −1 is θ, then for each row the two
// sides of a price's box, or a kind's slack.
const theta = -1

func (lp *master) above(row int) int { return -2 - 2*row }

func (lp *master) below(row int) int { return -3 - 2*row }

func newMaster(items int, count []float64) *master {
	lp := &master{items: items, rows: items + len(count), count: count}
	lp.low, lp.high = make([]float64, items), make([]float64, items)
	rng := rand.New(rand.NewPCG(3, uint64(items)))
	for row := range lp.rows {
		// Right sides that differ a little leave few ties: prices are good at
		// any right sides.
		const spread = 1e-5
		lp.right = append(lp.right, spread*rng.Float64())
		if row < items {
			lp.right[row]++
		}
	}
	lp.dual, lp.level, lp.work = make([]float64, lp.rows), make([]float64, lp.rows), make([]float64, lp.rows)
	lp.basis = make([]int, lp.rows)
	return lp
}

// tooLarge says that the inverse would take more memory and time than it is
// worth.
func (lp *master) tooLarge() bool {
	const most = 1500
	return lp.rows > most
}

// cold begins with the box's upper sides and the kinds' slacks.
func (lp *master) cold() {
	if lp.inverse == nil {
		lp.inverse = make([]float64, lp.rows*lp.rows)
	}
	clear(lp.inverse)
	for i := range lp.inBasis {
		lp.inBasis[i] = false
	}
	for row := range lp.rows {
		lp.inverse[row*lp.rows+row] = 1
		lp.basis[row] = lp.above(row)
		lp.level[row] = lp.right[row]
	}
}

// cost of a column, and its entries by each.
func (lp *master) cost(code int) float64 {
	switch {
	case code >= 0:
		return 0
	case code == theta:
		return 1
	}
	row, upper := (-2-code)/2, (-2-code)%2 == 0
	switch {
	case row >= lp.items:
		return 0
	case upper:
		return lp.high[row]
	}
	return -lp.low[row]
}

// each calls f with the rows of a column. A kind's row says
// Σ x − θ n + slack = 0.
func (lp *master) each(code int, f func(row int, value float64)) {
	switch {
	case code >= 0:
		for _, item := range lp.sets[code].items {
			f(int(item), 1)
		}
		f(lp.items+lp.sets[code].kind, 1)
	case code == theta:
		for kind, count := range lp.count {
			f(lp.items+kind, -count)
		}
	default:
		row, upper := (-2-code)/2, (-2-code)%2 == 0
		if upper {
			f(row, 1)
		} else {
			f(row, -1)
		}
	}
}

func (lp *master) add(set column) {
	if lp.most == 0 || set.load <= lp.most {
		lp.sets = append(lp.sets, set)
		lp.inBasis = append(lp.inBasis, false)
	}
}

// limit drops the sets of higher loads, and the oldest where they are very many.
func (lp *master) limit(load float64) {
	const many = 8000
	lp.most = load
	lp.sets = slices.DeleteFunc(lp.sets, func(set column) bool { return set.load > load })
	if len(lp.sets) > many {
		lp.sets = slices.Delete(lp.sets, 0, len(lp.sets)-many/2)
	}
	lp.inBasis = lp.inBasis[:len(lp.sets)]
}

// outside is how much the sides of the box are used: what is left of it is
// covered by sets alone.
func (lp *master) outside() float64 {
	total := 0.0
	for row, code := range lp.basis {
		if code < theta && (-2-code)/2 < lp.items {
			total += lp.level[row]
		}
	}
	return total
}
