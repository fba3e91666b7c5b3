package planner

import (
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// ConflictError says which pins contradict each other, in the model's names.
type ConflictError struct {
	Units   [2]string
	Devices [2]int
	Reason  string
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("%q on device %d and %q on device %d contradict each other: %s", e.Units[0], e.Devices[0], e.Units[1], e.Devices[1], e.Reason)
}

func (l *layout) explainConflict(err error) error {
	var c *chain.ConflictError
	if !errors.As(err, &c) {
		return err
	}
	name := func(i int) string { return l.p.Graph.Units[l.order[l.start[i]]].Name }
	out := &ConflictError{
		Units: [2]string{name(c.Items[0]), name(c.Items[1])}, Devices: c.Devices,
		Reason: "each device takes one stretch of the model, in device order",
	}
	if c.Across >= 0 {
		units := l.groups[c.Across]
		out.Reason = fmt.Sprintf("%q shares a parameter across both and must be on one device", l.p.Graph.Units[units[0]].Name)
	}
	return out
}
