package highs

import (
	"errors"
	"fmt"
	"math"
)

// Model is: minimise the sum of Cost times value over the columns, every row
// between its limits, every column between its own.
type Model struct {
	Columns []Column
	Rows    []Row
}

// Column is a variable. Lower may be −Inf and Upper +Inf.
type Column struct {
	Cost, Lower, Upper float64
	Integer            bool
}

// Row is a constraint: Lower ≤ Σ term ≤ Upper. Lower may be −Inf, Upper +Inf.
type Row struct {
	Lower, Upper float64
	Terms        []Term
}

// Term is a coefficient times a column.
type Term struct {
	Column      int
	Coefficient float64
}

// Column adds a variable and returns its number.
func (model *Model) Column(column Column) int {
	model.Columns = append(model.Columns, column)
	return len(model.Columns) - 1
}

// Row adds a constraint.
func (model *Model) Row(lower, upper float64, terms ...Term) {
	model.Rows = append(model.Rows, Row{lower, upper, terms})
}

// Check reports every fault of the model's form.
func (model *Model) Check() error {
	var faults []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	wrong(len(model.Columns) == 0, "a model with no columns")
	for i, column := range model.Columns {
		wrong(!finite(column.Cost), "columns[%d]: a cost of %v", i, column.Cost)
		wrong(math.IsNaN(column.Lower) || math.IsNaN(column.Upper), "columns[%d]: limits %v to %v", i, column.Lower, column.Upper)
	}
	for i, row := range model.Rows {
		wrong(math.IsNaN(row.Lower) || math.IsNaN(row.Upper), "rows[%d]: limits %v to %v", i, row.Lower, row.Upper)
		seen := make(map[int]bool, len(row.Terms))
		for _, term := range row.Terms {
			wrong(term.Column < 0 || term.Column >= len(model.Columns), "rows[%d]: there is no column %d", i, term.Column)
			wrong(!finite(term.Coefficient), "rows[%d]: column %d has the coefficient %v", i, term.Column, term.Coefficient)
			wrong(seen[term.Column], "rows[%d]: column %d stands there twice", i, term.Column)
			seen[term.Column] = true
		}
	}
	return errors.Join(faults...)
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
