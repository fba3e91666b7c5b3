package planner_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// TestNotFoundIsNotImpossible: a stopped search may have a map that does not fit, though another
// does. Its error then is not proved.
func TestNotFoundIsNotImpossible(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(75, 76))
	missed, proved := 0, 0
	for i := range randomproblem.Samples(250) {
		p := randomproblem.Problem(t, rng)
		_, err := planner.Solve(t.Context(), p, planner.Settings{Probes: 1})
		var no *planner.InfeasibleError
		if !errors.As(err, &no) {
			continue
		}
		_, err = planner.Solve(t.Context(), p, planner.Settings{})
		fits := err == nil
		said := "does not fit on "
		if !no.Proved {
			said = "no placement found on "
		}
		switch {
		case fits && no.Proved:
			t.Fatalf("%d: %v, and it fits", i, no)
		case !strings.HasPrefix(no.Error(), said) || no.Proved == strings.Contains(no.Error(), "infeasibility is not proven"):
			t.Fatalf("%d: proved %t, and said: %v", i, no.Proved, no)
		case fits:
			missed++
		case no.Proved:
			proved++
		}
	}
	if missed < 1 || proved < 25 {
		t.Errorf("%d that fit were not found, %d were refuted", missed, proved)
	}
}
