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
func (m *Model) Column(c Column) int {
	m.Columns = append(m.Columns, c)
	return len(m.Columns) - 1
}

// Row adds a constraint.
func (m *Model) Row(lower, upper float64, terms ...Term) {
	m.Rows = append(m.Rows, Row{lower, upper, terms})
}

// Check reports every fault of the model's form.
func (m *Model) Check() error {
	var faults []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	wrong(len(m.Columns) == 0, "a model with no columns")
	for i, c := range m.Columns {
		wrong(!finite(c.Cost), "columns[%d]: a cost of %v", i, c.Cost)
		wrong(math.IsNaN(c.Lower) || math.IsNaN(c.Upper), "columns[%d]: limits %v to %v", i, c.Lower, c.Upper)
	}
	for i, r := range m.Rows {
		wrong(math.IsNaN(r.Lower) || math.IsNaN(r.Upper), "rows[%d]: limits %v to %v", i, r.Lower, r.Upper)
		seen := make(map[int]bool, len(r.Terms))
		for _, t := range r.Terms {
			wrong(t.Column < 0 || t.Column >= len(m.Columns), "rows[%d]: there is no column %d", i, t.Column)
			wrong(!finite(t.Coefficient), "rows[%d]: column %d has the coefficient %v", i, t.Column, t.Coefficient)
			wrong(seen[t.Column], "rows[%d]: column %d stands there twice", i, t.Column)
			seen[t.Column] = true
		}
	}
	return errors.Join(faults...)
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
