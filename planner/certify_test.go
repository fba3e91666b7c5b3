package planner_test

import (
	"errors"
	"math"
	"testing"

	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/chainmemory"
	"github.com/devmap-dev/devmap/planner/internal/chaintime"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/offload"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// TestCertifyRefusesLargeMap: a map that does not fit is no answer under the time objective. Under
// memory it is an answer, with a share above 1.
func TestCertifyRefusesLargeMap(t *testing.T) {
	p := randomproblem.TimedChain(t, 3, 2) // 300 bytes on devices of 250
	for _, c := range []struct {
		objective planner.Objective
		method    instance.Method
		refused   bool
	}{{planner.Time, chaintime.Method{}, true}, {planner.Memory, chainmemory.Method{}, false}} {
		p.Objective = c.objective
		answer := &instance.Answer{Map: devicemap.Map{0, 0, 0}, Claim: certificate.Claim{Value: math.NaN()}}
		sol, err := planner.Certify(randomproblem.Instance(t, &p), answer, c.method)
		var fault *certificate.FaultError
		if errors.As(err, &fault) != c.refused || err == nil && sol.LargestShare <= 1 {
			t.Errorf("%s: %v", c.objective, err)
		}
	}
}

// TestCertifyLeft: the largest share is proved only for the offloaded units. If fewer bytes can be
// offloaded, the bound is for any choice of units.
func TestCertifyLeft(t *testing.T) {
	p := randomproblem.Chain(t, []int64{100, 100, 100}, 150, 150)
	p.Offload = planner.CPU
	in := randomproblem.Instance(t, &p)
	placed := devicemap.Map{0, 1, devicemap.CPU}
	for unit := range p.Costs.Units {
		p.Costs.Units[unit].OffloadBytes = 100
	}
	share := randomproblem.LargestShare(&p, placed)
	for _, c := range []struct {
		least, bound float64
		status       planner.Status
	}{{100, share, planner.Optimal}, {99, share / 2, planner.Feasible}} {
		answer := &instance.Answer{
			Map: placed, Claim: certificate.Claim{Value: share, LowerBound: share, Bound: "search", Rounding: certificate.Exact},
			Left: &instance.Left{Bytes: certificate.Claim{Value: 100, LowerBound: c.least, Rounding: certificate.Exact}, Average: share / 2},
		}
		sol, err := planner.Certify(in, answer, offload.Method{})
		if err != nil {
			t.Fatal(err)
		}
		if sol.Status != c.status || sol.LowerBound != c.bound || sol.Offloaded.Rest.Status != planner.Optimal || sol.Offloaded.Bytes != 100 {
			t.Errorf("of %v bytes at least: %+v, %+v", c.least, sol.Certificate, sol.Offloaded)
		}
	}
}
