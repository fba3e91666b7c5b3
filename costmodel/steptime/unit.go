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
	// unit's parameters come from a tier ([costmodel.OnCPU]).
	Copied float64
}

// Unit is what [Step] counts for unit u on device d.
func Unit(table *costmodel.Table, topo *costmodel.Topology, d, u int) UnitSeconds {
	device, work, precision := &topo.Devices[d], &table.Units[u].Work, table.Workload.Precision
	out := UnitSeconds{
		Forward: passSeconds(device, work.Forward, precision), Issue: issueSeconds(device, work.Forward),
		Token: passSeconds(device, work.Token, precision), IssueToken: issueSeconds(device, work.Token),
		Update: updateSeconds(device, work.Update, precision),
	}
	if table.Workload.Mode == costmodel.Train {
		out.Backward, out.IssueBack = passSeconds(device, work.Backward, precision), issueBackSeconds(device, work.Backward)
	}
	return out
}

// Passes is how often a unit's forward (and backward) runs in a step, and how
// many tokens are generated after.
func Passes(table *costmodel.Table) (microBatches, tokens float64) {
	return float64(max(1, table.Workload.MicroBatches)), float64(table.Workload.NewTokens)
}
