package costmodel_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// TestLinks: a link goes before hosts and ports and holds both ways, hosts before ports.
func TestLinks(t *testing.T) {
	const file = `{"format_version": "devmap.topology/v1", "host_memory_bytes": 64, "devices": [
	 {"name": "a", "capacity_bytes": 1, "host": "x", "link_bytes_per_second": 8, "host_bytes_per_second": 2},
	 {"name": "b", "capacity_bytes": 1, "host": "x", "link_bytes_per_second": 4, "host_bytes_per_second": 1},
	 {"name": "c", "capacity_bytes": 1, "host": "y", "link_bytes_per_second": 8, "host_bytes_per_second": 2},
	 {"name": "d", "capacity_bytes": 1, "host": "z", "link_bytes_per_second": 8}],
	 "links": [{"from": 0, "to": 2, "bytes_per_second": 16, "latency_seconds": 1}, {"from": 2, "to": 0, "bytes_per_second": 32, "latency_seconds": 0}, {"from": 3, "to": 0, "bytes_per_second": 64, "latency_seconds": 0}]}`
	topo, err := costmodel.ParseTopology("t.json", []byte(file), func(string) costmodel.Device { return costmodel.Device{} })
	if err != nil || topo.HostMemoryBytes != 64 {
		t.Fatal(topo, err)
	}
	for _, c := range []struct {
		from, to int
		linked   bool
		seconds  float64 // of 64 bytes
	}{
		{0, 1, true, 16}, // the slower port, inside a host
		{0, 2, true, 5},  // the link
		{2, 0, true, 2},  // its own back
		{0, 3, true, 1},  // the link of the other way
		{1, 2, true, 64}, // between hosts
		{1, 3, false, 0}, // one of them has no rate
	} {
		if got := topo.Linked(c.from, c.to); got != c.linked {
			t.Errorf("%d to %d: linked %t", c.from, c.to, got)
		}
		if got := topo.SendSeconds(c.from, c.to, 64); c.linked && got != c.seconds {
			t.Errorf("%d to %d: %v s, not %v", c.from, c.to, got, c.seconds)
		}
	}
	again, err := costmodel.ParseTopology("t.json", must(topo.MarshalJSON()), func(string) costmodel.Device { return costmodel.Device{} })
	if err != nil || again.Devices[0] != topo.Devices[0] || len(again.Links) != 3 || again.HostMemoryBytes != 64 {
		t.Errorf("%+v, %v", again, err)
	}
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

// TestSlowerHost: a copy between hosts goes at the pace of the slower of the two, whichever sends.
func TestSlowerHost(t *testing.T) {
	topo := &costmodel.Topology{Devices: []costmodel.Device{{}, {Host: "b"}}}
	for device := range topo.Devices {
		topo.Devices[device].LinkBytesPerSecond = 1
	}
	topo.Devices[0].HostBytesPerSecond, topo.Devices[1].HostBytesPerSecond = 4, 2
	for _, from := range []int{0, 1} {
		if got := topo.SendSeconds(from, 1-from, 8); got != 4 {
			t.Errorf("from %d: %v s, want 8 bytes at 2 a second", from, got)
		}
	}
}
