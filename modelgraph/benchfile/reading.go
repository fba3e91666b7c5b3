package benchfile

import (
	"fmt"
	"math"

	"github.com/devmap-dev/devmap/modelgraph"
)

// reading keeps the first fault of a file.
type reading struct {
	file string
	err  error
}

func (r *reading) fault(place, format string, args ...any) {
	if r.err == nil {
		r.err = &modelgraph.SyntaxError{File: r.file, Place: place, Msg: fmt.Sprintf(format, args...)}
	}
}

// most bounds amounts, so that sums stay finite and sizes in bytes whole.
const most = 1 << 53

// amount is a finite number, 0 or more.
func (r *reading) amount(place string, v *float64) float64 {
	switch {
	case v == nil:
		r.fault(place, "missing")
		return 0
	case !(*v >= 0) || *v > most:
		r.fault(place, "%v is not between 0 and 2^53", *v)
		return 0
	}
	return *v
}

// positive is an amount above 0.
func (r *reading) positive(place string, v *float64) float64 {
	a := r.amount(place, v)
	if a == 0 {
		r.fault(place, "%v is not above 0", a)
	}
	return a
}

func (r *reading) whole(place string, v *int) int {
	if v == nil {
		r.fault(place, "missing")
		return 0
	}
	return *v
}

// count is a whole number from 1 on.
func (r *reading) count(place string, v *int) int {
	n := r.whole(place, v)
	if n < 1 || n > math.MaxInt32 {
		r.fault(place, "%d is not between 1 and 2^31-1", n)
		return 1
	}
	return n
}

// node is the index of the node with that id.
func (r *reading) node(place string, id *int, index map[int]int) int {
	n := r.whole(place, id)
	i, known := index[n]
	if !known {
		r.fault(place, "there is no node %d", n)
	}
	return i
}
