package devicemap

import (
	"math"

	"github.com/devmap-dev/devmap/costmodel"
)

// follow replaces a peak's slack by the pool of the simulated allocation requests. Slack is the
// least and the most that the pool reserves above the peak.
func (p *Predicted) follow(table *costmodel.Table, dev *costmodel.Device, units []int, input bool) {
	if table.Marks == nil || dev.Slack != [2]float64{} {
		return
	}
	var reserved [2]int64
	for _, mark := range table.Marks(units, input) {
		reserved = [2]int64{max(reserved[0], mark[0]), max(reserved[1], mark[1])}
	}
	if reserved[1] == 0 { // not simulated
		return
	}
	for i, beyond := range table.Followed {
		p.SlackBytes[i] = max(0, reserved[i]-p.PeakAllocatedBytes+int64(math.Round(beyond*float64(p.PeakAllocatedBytes))))
	}
	p.DeviceUsedBytes = p.PeakAllocatedBytes + p.OverheadBytes + (p.SlackBytes[0]+p.SlackBytes[1])/2
}
