// Package certificate is the one end of every solver's answer. Code that the
// solver has no part in computes the value again and compares the bound with it.
// The status follows from the two.
package certificate

import (
	"fmt"
	"math"
)

// Status says what is proved about an answer. It is written here and nowhere
// else.
type Status string

// The statuses.
const (
	Optimal      Status = "optimal"       // the lower bound meets the value: nothing is better
	Feasible     Status = "feasible"      // the gap is not closed
	LimitReached Status = "limit reached" // nor is it, as the search was stopped early
)

// Certificate is the value of an answer with what is proved about it.
type Certificate struct {
	// Value is what is minimised. LowerBound is what no answer can be below,
	// as the solver proved it, or the value where that meets it to rounding;
	// Bound is the argument for it.
	Value, LowerBound float64
	Bound             string
	Status            Status
}

// Optimal says that the bound meets the value.
func (certificate *Certificate) Optimal() bool { return certificate.Status == Optimal }

// Early says that the search was cut short, with a gap left.
func (certificate *Certificate) Early() bool { return certificate.Status == LimitReached }

// Gap is (Value − LowerBound) / Value: 0 where the answer is optimal, and only
// there.
func (certificate *Certificate) Gap() float64 { return Gap(certificate.Value, certificate.LowerBound) }

// Gap is (value − lowerBound) / value, 0 where the value is.
func Gap(value, lowerBound float64) float64 {
	if value <= 0 {
		return 0
	}
	return (value - lowerBound) / value
}

// Roundings that a claim may name, as parts of the value.
const (
	// Exact is that of a quotient of two whole numbers.
	Exact = 1e-15
	// Sums is that of sums of fractions in another order, by solvers that take
	// one part in 10⁹ off their bounds to be safe.
	Sums = 2e-9
)

// Claim is what a solver says of its answer.
type Claim struct {
	// Value is the answer's by the solver's own sums; NaN where it made none.
	Value float64
	// LowerBound is the number that the solver proved, never its value for
	// want of another. Bound is the argument.
	LowerBound float64
	Bound      string
	// Rounding is what these may be off by, as a part of the value.
	Rounding float64
	// Stopped: the search was cut short.
	Stopped bool
}

// FaultError is an answer that fails its own check: a fault of the solver's,
// never the user's.
type FaultError struct{ Msg string }

// Error implements error.
func (err *FaultError) Error() string { return err.Msg + " (please report this)" }

func fault(format string, args ...any) error { return &FaultError{fmt.Sprintf(format, args...)} }

// Certify holds a claim against the value that the plain form found. An error
// is a [*FaultError]: the solver's sums are others, or its bound is above an
// answer that exists.
func (claim Claim) Certify(found float64) (Certificate, error) {
	slack := claim.Rounding * math.Abs(found)
	switch {
	case math.IsNaN(found) || math.IsInf(found, 0):
		return Certificate{}, fault("the answer's value is %v", found)
	case math.Abs(claim.Value-found) > slack: // not where it is NaN
		return Certificate{}, fault("the solver says the answer's value is %v, the plain form %v", claim.Value, found)
	case !(claim.LowerBound <= found+slack):
		return Certificate{}, fault("the solver says that nothing is below %v (%s), and its answer is %v", claim.LowerBound, claim.Bound, found)
	}
	out := Certificate{Value: found, LowerBound: claim.LowerBound, Bound: claim.Bound, Status: Feasible}
	switch {
	case claim.LowerBound >= found-slack: // rounding is no gap
		out.Status, out.LowerBound = Optimal, found
	case claim.Stopped:
		out.Status = LimitReached
	}
	return out, nil
}
