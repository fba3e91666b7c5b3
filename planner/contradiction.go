package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// ContradictionError is pins and together-groups that no map keeps all of:
// the smallest set of them that was found, none of which can be left out.
type ContradictionError struct {
	Pins     []Pin
	Together [][]string
	// Err is what is wrong with them: a [*PatternError] or [*ConflictError].
	Err error
}

// Error implements error.
func (e *ContradictionError) Error() string {
	var flags []string
	for _, p := range e.Pins {
		flags = append(flags, fmt.Sprintf("--pin %s=%d", p.Pattern, p.Device))
	}
	for _, t := range e.Together {
		flags = append(flags, "--together "+strings.Join(t, ","))
	}
	return fmt.Sprintf("%v (the smallest contradiction found: %s)", e.Err, strings.Join(flags, " "))
}

// Unwrap is what is wrong.
func (e *ContradictionError) Unwrap() error { return e.Err }

// mostPairs is up to how many pins and groups all pairs are looked at.
const mostPairs = 40

// contradicted narrows a contradiction down: to a pair where there is one,
// else by leaving constraints out one by one while what is left still
// contradicts itself (the deletion filter of Chinneck and Dravnieks, ORSA J.
// on Computing 3, 1991). One constraint alone is no contradiction of several:
// its own error says enough.
func (p *Problem) contradicted(err error) error {
	var pattern *PatternError
	var conflict *ConflictError
	n := len(p.Pins) + len(p.Together)
	if n < 2 || !errors.As(err, &pattern) && !errors.As(err, &conflict) {
		return err
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	for i := range all {
		if p.only(all[i:i+1]).contradiction() != nil {
			return err
		}
	}
	if set, found := p.pair(all); found {
		return p.only(set).named()
	}
	for i := 0; i < len(all); {
		less := slices.Delete(slices.Clone(all), i, i+1)
		if p.only(less).contradiction() != nil {
			all = less
			continue
		}
		i++
	}
	if q := p.only(all); q.contradiction() != nil {
		return q.named()
	}
	return err
}

func (p *Problem) pair(all []int) ([]int, bool) {
	if len(all) > mostPairs {
		return nil, false
	}
	for j := range all {
		for i := range j {
			if set := []int{i, j}; p.only(set).contradiction() != nil {
				return set, true
			}
		}
	}
	return nil, false
}

// only is the problem with some of its constraints: pins by number, then
// together-groups.
func (p *Problem) only(which []int) *Problem {
	q := *p
	q.Pins, q.Together = nil, nil
	for _, i := range which {
		if i < len(p.Pins) {
			q.Pins = append(q.Pins, p.Pins[i])
		} else {
			q.Together = append(q.Together, p.Together[i-len(p.Pins)])
		}
	}
	return &q
}

func (p *Problem) named() error {
	return &ContradictionError{p.Pins, p.Together, p.contradiction()}
}

// contradiction is what is wrong with the constraints; nil where some map
// keeps them.
func (p *Problem) contradiction() error {
	var pattern *PatternError
	if p.Anywhere && !p.piped() {
		if _, err := newScatter(p); errors.As(err, &pattern) {
			return err
		}
		return nil
	}
	l, fixed, err := p.layout()
	if err != nil {
		if errors.As(err, &pattern) {
			return err
		}
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // the first map is all that is asked for
	_, err = chain.Solve(ctx, l.problem(fixed), chain.Settings{Probes: 1, NoSquares: true})
	var conflict *chain.ConflictError
	if errors.As(err, &conflict) {
		return l.explainConflict(err)
	}
	return nil
}
