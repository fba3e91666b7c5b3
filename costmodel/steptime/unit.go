package steptime

import "github.com/devmap-dev/devmap/costmodel"

// UnitSeconds are the times of one unit on one device, in seconds.
type UnitSeconds struct {
	// Forward and Backward are of one micro-batch; Backward is 0 but in
	// training.
	Forward, Backward float64
	// Issue and IssueBack are the host's times to issue them ([Clock]).
	Issue, IssueBack float64
	// Token and IssueToken are of one generated token.
	Token, IssueToken float64
	// Update is of the optimizer's step.
	Update float64
	// Copied is what host and device wait for before each forward, where the
	// unit's parameters come from a tier.
	Copied float64
}

// Unit is what [Step] counts for a unit on a device.
func Unit(table *costmodel.Table, topo *costmodel.Topology, device, unit int) UnitSeconds {
	on, work, precision := &topo.Devices[device], &table.Units[unit].Work, table.Workload.Precision
	out := UnitSeconds{
		Forward: passSeconds(on, work.Forward, precision), Issue: issueSeconds(on, work.Forward),
		Token: passSeconds(on, work.Token, precision), IssueToken: issueSeconds(on, work.Token),
		Update: updateSeconds(on, work.Update, precision),
	}
	if table.Workload.Mode == costmodel.Train {
		out.Backward, out.IssueBack = passSeconds(on, work.Backward, precision), issueBackSeconds(on, work.Backward)
	}
	return out
}
