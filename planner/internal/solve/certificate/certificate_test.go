package certificate_test

import (
	"math"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

func TestCertify(t *testing.T) {
	const r = 1e-9
	for _, c := range []struct {
		name         string
		claim        certificate.Claim
		found        float64
		status       certificate.Status
		lower, gap   float64
		fault, about string
	}{
		{name: "the bound meets the value", claim: certificate.Claim{Value: 4, LowerBound: 4, Rounding: r}, found: 4, status: certificate.Optimal, lower: 4},
		{name: "by less than rounding", claim: certificate.Claim{Value: 4, LowerBound: 4 - 3e-9, Rounding: r}, found: 4, status: certificate.Optimal, lower: 4},
		{name: "by more", claim: certificate.Claim{Value: 4, LowerBound: 4 - 5e-9, Rounding: r}, found: 4, status: certificate.Feasible, lower: 4 - 5e-9, gap: 1.25e-9},
		{name: "a bound above by rounding is no more than the value", claim: certificate.Claim{Value: 4, LowerBound: 4 + 3e-9, Rounding: r}, found: 4, status: certificate.Optimal, lower: 4},
		{name: "a bound above the value", claim: certificate.Claim{Value: 4, LowerBound: 4 + 5e-9, Bound: "average", Rounding: r}, found: 4, fault: "nothing is below 4.000000005 (average)"},
		{name: "a bound above what there is, by the plain form", claim: certificate.Claim{Value: math.NaN(), LowerBound: 4, Rounding: r}, found: 3, fault: "and its answer is 3"},
		{name: "other sums, too low", claim: certificate.Claim{Value: 3, LowerBound: 3, Rounding: r}, found: 4, fault: "value is 3, the plain form 4"},
		{name: "other sums, too high", claim: certificate.Claim{Value: 5, LowerBound: 3, Rounding: r}, found: 4, fault: "value is 5, the plain form 4"},
		{name: "no sums of its own", claim: certificate.Claim{Value: math.NaN(), LowerBound: 3, Rounding: r}, found: 4, status: certificate.Feasible, lower: 3, gap: .25},
		{name: "stopped, and the gap is open", claim: certificate.Claim{Value: 4, LowerBound: 3, Rounding: r, Stopped: true}, found: 4, status: certificate.LimitReached, lower: 3, gap: .25},
		{name: "stopped, and the gap is closed", claim: certificate.Claim{Value: 4, LowerBound: 4, Rounding: r, Stopped: true}, found: 4, status: certificate.Optimal, lower: 4},
		{name: "nothing to do", claim: certificate.Claim{Rounding: r}, status: certificate.Optimal},
		{name: "a bound that is no number", claim: certificate.Claim{Value: 4, LowerBound: math.NaN(), Rounding: r}, found: 4, fault: "NaN"},
		{name: "a value that is no number", claim: certificate.Claim{Value: math.Inf(1), Rounding: r}, found: math.Inf(1), fault: "+Inf"},
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
			if (got.Gap() == 0) != (got.Status == certificate.Optimal) {
				t.Errorf("%s with a gap of %v", got.Status, got.Gap())
			}
		})
	}
}
