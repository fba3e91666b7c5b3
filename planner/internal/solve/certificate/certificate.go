// Package certificate certifies every solver's answer. Independent code computes the value again,
// and [Claim.Certify] compares the solver's value and bound with it. The status follows from the
// two.
package certificate

import (
	"fmt"
	"math"
)

// Status says what is proved about an answer. Only this package sets it.
type Status string

// The statuses.
const (
	Optimal      Status = "optimal"       // the lower bound equals the value: nothing is better
	Feasible     Status = "feasible"      // a gap is left
	LimitReached Status = "limit reached" // a gap is left, and a limit stopped the search
)

// Certificate is the value of an answer with what is proved about it.
type Certificate struct {
	// Value is the minimized quantity. LowerBound is a proved bound for every answer, or the value
	// if the two are equal up to rounding. Bound is the argument for it.
	Value, LowerBound float64
	Bound             string
	Status            Status
}

// Optimal reports that the bound equals the value.
func (certificate *Certificate) Optimal() bool { return certificate.Status == Optimal }

// Early reports that a limit stopped the search with a gap left.
func (certificate *Certificate) Early() bool { return certificate.Status == LimitReached }

// Gap returns (Value − LowerBound) / Value. It is 0 exactly if the answer is optimal.
func (certificate *Certificate) Gap() float64 { return Gap(certificate.Value, certificate.LowerBound) }

// Gap returns (value − lowerBound) / value; 0 if the value is 0.
func Gap(value, lowerBound float64) float64 {
	if value <= 0 {
		return 0
	}
	return (value - lowerBound) / value
}

// Rounding errors that a claim may allow, as a fraction of the value.
const (
	// Exact is for a quotient of two whole numbers.
	Exact = 1e-15
	// Sums is for sums of fractions in another order. Solvers that use it lower their bounds by one
	// part in 10⁹ to be safe.
	Sums = 2e-9
)

// Claim is a solver's statement about its answer.
type Claim struct {
	// Value is the answer's value by the solver's own sums; NaN if it computed none.
	Value float64
	// LowerBound is the bound that the solver proved. It is never the value in place of a missing
	// bound. Bound is the argument.
	LowerBound float64
	Bound      string
	// Rounding is the allowed error of both, as a fraction of the value.
	Rounding float64
	// Stopped: a limit stopped the search.
	Stopped bool
}

// FaultError is an answer that fails its own check. It is a bug of the solver.
type FaultError struct{ Msg string }

// Error implements error.
func (err *FaultError) Error() string { return err.Msg + " (please report this)" }

func fault(format string, args ...any) error { return &FaultError{fmt.Sprintf(format, args...)} }

// Certify compares a claim with the value that independent code found. An error is a [*FaultError]:
// the solver's value differs, or its bound is above an existing answer.
func (claim Claim) Certify(found float64) (Certificate, error) {
	slack := claim.Rounding * math.Abs(found)
	switch {
	case math.IsNaN(found) || math.IsInf(found, 0):
		return Certificate{}, fault("the answer's value is %v", found)
	case math.Abs(claim.Value-found) > slack: // false if it is NaN
		return Certificate{}, fault("the solver says the answer's value is %v, the plain form %v", claim.Value, found)
	case !(claim.LowerBound <= found+slack):
		return Certificate{}, fault("the solver says that nothing is below %v (%s), and its answer is %v", claim.LowerBound, claim.Bound, found)
	}
	out := Certificate{Value: found, LowerBound: claim.LowerBound, Bound: claim.Bound, Status: Feasible}
	switch {
	case claim.LowerBound >= found-slack: // equal up to rounding
		out.Status, out.LowerBound = Optimal, found
	case claim.Stopped:
		out.Status = LimitReached
	}
	return out, nil
}
