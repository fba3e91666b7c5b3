package accuracy_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

func TestZZ(t *testing.T) {
	const files = "../../../fixtures/measured/"
	maps := slices.Concat(measuredRows(t), loraRows(t, files+"more.json"), loraRows(t, files+"more2.json"), maskRows(t), checkedRows(t))
	for _, r := range maps {
		g, table := costsOf(t, []byte(cmp.Or(r.config, peerConfigs[r.model])), r.w)
		table.OutputsDropped = r.dropped
		if table.Marks == nil {
			continue
		}
		gpu, _ := catalogue.Find("h200-141gb")
		topo := &costmodel.Topology{}
		for range r.peak { topo.Devices = append(topo.Devices, gpu.Device(r.w.Mode)) }
		m := devicemap.Check(g, table, topo, r.flat, nil).Map
		for d, reserved := range r.reserved {
			if reserved == 0 || r.peak[d] < 1<<30 {
				continue
			}
			var units []int
			for u, at := range m {
				if int(at) == d {
					units = append(units, u)
				}
			}
			marks := table.Marks(units, d == table.InputDevice)
			if marks == nil { continue }
			s := ""
			for _, mk := range marks { s += fmt.Sprintf(" (%.3f %.3f: %+.2f%%)", gib(mk[0]), gib(mk[1]), 100*float64(mk[1]-reserved)/float64(r.peak[d])) }
			t.Logf("%-46s %d peak %8.3f res %8.3f %s", r.name(), d, gib(r.peak[d]), gib(reserved), s)
		}
	}
}
