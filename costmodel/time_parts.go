package costmodel

import "fmt"

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

// UnitSeconds are what [Table.StepSeconds] counts for unit u on device d.
func (t *Table) UnitSeconds(topo *Topology, d, u int) UnitSeconds {
	s, w := timing{t: t, topo: topo}, &t.Units[u].Work
	out := UnitSeconds{Forward: s.seconds(d, w.Forward), Token: s.seconds(d, w.Token), Issue: s.issue(d, w.Forward), IssueToken: s.issue(d, w.Token)}
	if t.Workload.Mode == Train {
		out.Backward = s.seconds(d, w.Backward)
		out.IssueBack = s.issueBack(d, w.Backward)
		out.Update = s.updates(d, w.Update)
	}
	return out
}

// SendSeconds is the time of a copy between two devices: by their link, or
// by the slower of their ports where no link is given.
func (t *Topology) SendSeconds(from, to int, bytes int64) float64 {
	s := timing{topo: t}
	return s.send(from, to, bytes)
}

// Passes is how often a unit's forward (and backward) runs in a step, and how
// many tokens are generated after.
func (t *Table) Passes() (microBatches, tokens float64) {
	s := timing{t: t}
	return s.microBatches(), s.tokens()
}

// TimeError says that a step's time is not known.
type TimeError struct{ Msg string }

// Error implements error.
func (e *TimeError) Error() string { return e.Msg }

// Timed reports why [Table.StepSeconds] has no answer, nil where it has one.
func (t *Table) Timed(topo *Topology) error {
	if t.Workload.Mode == Load {
		return &TimeError{"the time of a step: nothing runs in --mode load (infer and train work)"}
	}
	for d := range topo.Devices {
		if topo.Devices[d].FLOPS <= 0 {
			return &TimeError{fmt.Sprintf("the time of a step: device %d (%q) has no \"flops\" in the topology", d, topo.Devices[d].Name)}
		}
	}
	return nil
}
