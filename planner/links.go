package planner

import (
	"fmt"

	"github.com/devmap-dev/devmap/planner/devicemap"
)

// LinkError says that a map sends data between two devices that the topology
// does not join.
type LinkError struct {
	From, To int
	// Units are the two that follow each other across the pair.
	Units [2]string
}

// Error implements error.
func (e *LinkError) Error() string {
	return fmt.Sprintf("links missing between used devices: %q on device %d sends to %q on device %d, and the topology's \"links\" do not join them (add {\"from\": %d, \"to\": %d, …}, or name their \"host\")",
		e.Units[0], e.From, e.Units[1], e.To, e.From, e.To)
}

// linked reports the first pair of devices that a map needs a link between
// and has none.
func (p *Problem) linked(m devicemap.Map) error {
	for u := 1; u < len(m); u++ {
		from, to := m[u-1], m[u]
		if from >= 0 && to >= 0 && !p.Topology.Linked(int(from), int(to)) {
			return &LinkError{int(from), int(to), [2]string{p.Graph.Units[u-1].Name, p.Graph.Units[u].Name}}
		}
	}
	return nil
}
