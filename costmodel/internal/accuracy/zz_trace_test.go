package accuracy_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/internal/replay"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

func TestZZTrace(t *testing.T) {
	name := os.Getenv("ZROW")
	dev, _ := strconv.Atoi(os.Getenv("ZDEV"))
	const files = "../../../fixtures/measured/"
	maps := slices.Concat(measuredRows(t), loraRows(t, files+"more.json"), loraRows(t, files+"more2.json"), maskRows(t), checkedRows(t))
	for _, r := range maps {
		if r.name() != name {
			continue
		}
		g, table := costsOf(t, []byte(cmp.Or(r.config, peerConfigs[r.model])), r.w)
		table.OutputsDropped = r.dropped
		gpu, _ := catalogue.Find("h200-141gb")
		topo := &costmodel.Topology{}
		for range r.peak {
			topo.Devices = append(topo.Devices, gpu.Device(r.w.Mode))
		}
		m := devicemap.Check(g, table, topo, r.flat, nil).Map
		var units []int
		for u, at := range m {
			if int(at) == dev {
				units = append(units, u)
			}
		}
		f, _ := os.Create(os.Getenv("ZOUT"))
		defer f.Close()
		ids := map[*replay.Tensor]int{}
		n := 0
		replay.Trace = func(kind int, bytes int64, tensor *replay.Tensor, at string) {
			if kind > 0 {
				n++
				ids[tensor] = n
				fmt.Fprintf(f, "+ %d %d %s\n", n, bytes, at)
			} else {
				fmt.Fprintf(f, "- %d %d\n", ids[tensor], bytes)
			}
		}
		marks := table.Marks(units, dev == table.InputDevice)
		replay.Trace = nil
		t.Log(marks)
		return
	}
}
