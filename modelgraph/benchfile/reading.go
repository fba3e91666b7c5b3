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

func (read *reading) fault(place, format string, args ...any) {
	if read.err == nil {
		read.err = &modelgraph.SyntaxError{File: read.file, Place: place, Msg: fmt.Sprintf(format, args...)}
	}
}

// maxAmount limits amounts, so that sums stay finite and sizes in bytes whole.
const maxAmount = 1 << 53

// amount reads a finite number, 0 or more.
func (read *reading) amount(place string, value *float64) float64 {
	switch {
	case value == nil:
		read.fault(place, "missing")
		return 0
	case !(*value >= 0) || *value > maxAmount:
		read.fault(place, "%v is not between 0 and 2^53", *value)
		return 0
	}
	return *value
}

// positive reads an amount above 0.
func (read *reading) positive(place string, value *float64) float64 {
	amount := read.amount(place, value)
	if amount == 0 {
		read.fault(place, "%v is not above 0", amount)
	}
	return amount
}

func (read *reading) whole(place string, value *int) int {
	if value == nil {
		read.fault(place, "missing")
		return 0
	}
	return *value
}

// count reads a whole number from 1 on.
func (read *reading) count(place string, value *int) int {
	count := read.whole(place, value)
	if count < 1 || count > math.MaxInt32 {
		read.fault(place, "%d is not between 1 and 2^31-1", count)
		return 1
	}
	return count
}

// node returns the index of the node with that id.
func (read *reading) node(place string, id *int, index map[int]int) int {
	number := read.whole(place, id)
	i, known := index[number]
	if !known {
		read.fault(place, "there is no node %d", number)
	}
	return i
}
