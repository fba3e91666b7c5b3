package steptime

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
)

// UnitSeconds are the times of one unit on one device, in seconds.
type UnitSeconds struct {
	// Forward and Backward are of one micro-batch; Backward is 0 but in
	// training.
	Forward, Backward float64
	// Issue and IssueBack are the host's times to issue them, which run ahead
	// of the device ([clock]).
	Issue, IssueBack float64
	// Token and IssueToken are of one generated token.
	Token, IssueToken float64
	Update            float64 // of the optimizer's step
}

// Unit is what [Step] counts for unit u on device d.
func Unit(t *costmodel.Table, topo *costmodel.Topology, d, u int) UnitSeconds {
	s, w := timing{t: t, topo: topo}, &t.Units[u].Work
	out := UnitSeconds{Forward: s.seconds(d, w.Forward), Token: s.seconds(d, w.Token), Issue: s.issue(d, w.Forward), IssueToken: s.issue(d, w.Token)}
	if t.Workload.Mode == costmodel.Train {
		out.Backward = s.seconds(d, w.Backward)
		out.IssueBack = s.issueBack(d, w.Backward)
		out.Update = s.updates(d, w.Update)
	}
	return out
}

// Passes is how often a unit's forward (and backward) runs in a step, and how
// many tokens are generated after.
func Passes(t *costmodel.Table) (microBatches, tokens float64) {
	s := timing{t: t}
	return s.microBatches(), s.tokens()
}

// Error says that a step's time is not known.
type Error struct{ Msg string }

// Error implements error.
func (e *Error) Error() string { return e.Msg }

// Check reports why [Step] has no answer, nil where it has one.
func Check(t *costmodel.Table, topo *costmodel.Topology) error {
	if t.Workload.Mode == costmodel.Load {
		return &Error{"the time of a step: nothing runs in --mode load (infer and train work)"}
	}
	for d := range topo.Devices {
		if topo.Devices[d].FLOPS <= 0 {
			return &Error{fmt.Sprintf("the time of a step: device %d (%q) has no \"flops\" in the topology", d, topo.Devices[d].Name)}
		}
	}
	return nil
}
