package steptime

import "github.com/devmap-dev/devmap/costmodel"

// clock is where a host and the device that it issues kernels to have got.
// The host does not wait: a pass ends when the device is through with it, and
// not before the host has issued its last kernel.
type clock struct {
	host, device float64
	issue, work  float64 // sums
}

// run is a pass that the host issues in issue seconds and the device works on
// for length.
func (c *clock) run(issue, length float64) {
	c.host += issue
	c.device = max(c.device+length, c.host)
	c.issue += issue
	c.work += length
}

// times is the end of n rounds like the one that was run: from the second on,
// the slower of host and device sets the pace.
func (c *clock) times(n float64) float64 {
	return c.device + (n-1)*max(c.issue, c.work)
}

// issue is the host's time to issue a forward.
func (s *timing) issue(d int, p costmodel.Pass) float64 {
	return p.Kernels * s.topo.Devices[d].IssueSeconds
}

// issueBack is the host's time to issue a backward: autograd's engine calls
// kernels without Python.
func (s *timing) issueBack(d int, p costmodel.Pass) float64 {
	return p.Kernels * s.topo.Devices[d].BackwardIssueSeconds
}
