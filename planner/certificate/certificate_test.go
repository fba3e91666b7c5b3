package certificate_test

import (
	"math"
	"strings"
	"testing"

	. "github.com/devmap-dev/devmap/planner/certificate"
)

func TestCertify(t *testing.T) {
	const r = 1e-9
	for _, c := range []struct {
		name         string
		claim        Claim
		found        float64
		status       Status
		lower, gap   float64
		fault, about string
	}{
		{name: "the bound meets the value", claim: Claim{Value: 4, LowerBound: 4, Rounding: r}, found: 4, status: Optimal, lower: 4},
		{name: "by less than rounding", claim: Claim{Value: 4, LowerBound: 4 - 3e-9, Rounding: r}, found: 4, status: Optimal, lower: 4},
		{name: "by more", claim: Claim{Value: 4, LowerBound: 4 - 5e-9, Rounding: r}, found: 4, status: Feasible, lower: 4 - 5e-9, gap: 1.25e-9},
		{name: "a bound above by rounding is no more than the value", claim: Claim{Value: 4, LowerBound: 4 + 3e-9, Rounding: r}, found: 4, status: Optimal, lower: 4},
		{name: "a bound above the value", claim: Claim{Value: 4, LowerBound: 4 + 5e-9, Bound: "average", Rounding: r}, found: 4, fault: "nothing is below 4.000000005 (average)"},
		{name: "a bound above what there is, by the plain form", claim: Claim{Value: math.NaN(), LowerBound: 4, Rounding: r}, found: 3, fault: "and its answer is 3"},
		{name: "other sums, too low", claim: Claim{Value: 3, LowerBound: 3, Rounding: r}, found: 4, fault: "value is 3, the plain form 4"},
		{name: "other sums, too high", claim: Claim{Value: 5, LowerBound: 3, Rounding: r}, found: 4, fault: "value is 5, the plain form 4"},
		{name: "no sums of its own", claim: Claim{Value: math.NaN(), LowerBound: 3, Rounding: r}, found: 4, status: Feasible, lower: 3, gap: .25},
		{name: "stopped, and the gap is open", claim: Claim{Value: 4, LowerBound: 3, Rounding: r, Stopped: true}, found: 4, status: LimitReached, lower: 3, gap: .25},
		{name: "stopped, and the gap is closed", claim: Claim{Value: 4, LowerBound: 4, Rounding: r, Stopped: true}, found: 4, status: Optimal, lower: 4},
		{name: "nothing to do", claim: Claim{Rounding: r}, status: Optimal},
		{name: "a bound that is no number", claim: Claim{Value: 4, LowerBound: math.NaN(), Rounding: r}, found: 4, fault: "NaN"},
		{name: "a value that is no number", claim: Claim{Value: math.Inf(1), Rounding: r}, found: math.Inf(1), fault: "+Inf"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.claim.Certify(c.found)
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) || !strings.Contains(err.Error(), "please report this") {
					t.Fatalf("%+v, %v; want the fault %q", got, err, c.fault)
				}
				return
			}
			if err != nil || got.Value != c.found || got.Status != c.status || got.LowerBound != c.lower || math.Abs(got.Gap()-c.gap) > 1e-15 {
				t.Errorf("%+v with a gap of %v, %v", got, got.Gap(), err)
			}
			if (got.Gap() == 0) != (got.Status == Optimal) {
				t.Errorf("%s with a gap of %v", got.Status, got.Gap())
			}
		})
	}
}
