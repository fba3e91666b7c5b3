package planner

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Sent is the bytes that cross between devices in a step under a map: what a
// unit makes goes once to every other device that reads it, its gradient
// comes back in training, and the model's outputs go to the input's device. 0
// where nothing runs (load).
func (p *Problem) Sent(m devicemap.Map) int64 {
	if p.Costs.Workload.Mode == costmodel.Load || m == nil {
		return 0
	}
	return newSender(p).sent(m)
}

// sender counts what crosses.
type sender struct {
	t       *costmodel.Table
	readers [][]int // of each unit's output
	seen    []int   // per device, the last unit whose output it has
}

func newSender(p *Problem) *sender {
	s := &sender{t: p.Costs, readers: make([][]int, len(p.Graph.Units)), seen: make([]int, len(p.Topology.Devices))}
	for u := range p.Graph.Units {
		for _, from := range p.Graph.Units[u].Inputs {
			s.readers[from] = append(s.readers[from], u)
		}
	}
	return s
}

// sent is Sent; in load mode, where no output has a size, the number of
// outputs that cross.
func (s *sender) sent(m devicemap.Map) int64 {
	w := &s.t.Workload
	for d := range s.seen {
		s.seen[d] = -1
	}
	var bytes, outputs int64
	for u := range s.readers {
		for _, r := range s.readers[u] {
			if d := m[r]; d != m[u] && s.seen[d] != u {
				s.seen[d] = u
				bytes += s.t.Units[u].Work.Output
				outputs++
			}
		}
	}
	if w.Mode == costmodel.Load {
		return outputs
	}
	if w.Mode == costmodel.Train {
		bytes *= 2
	}
	if w.Seq > 0 {
		bytes += bytes * w.NewTokens / w.Seq
	}
	if last := len(m) - 1; last >= 0 && int(m[last]) != s.t.InputDevice {
		bytes += s.t.OutputBytes
	}
	return max(1, w.MicroBatches) * bytes
}

// Contiguous reports that each device holds one run of the units, in device
// order, tie groups aside.
func (p *Problem) Contiguous(m devicemap.Map) bool {
	tied := make([]bool, len(m))
	for _, units := range p.Graph.TiedUnits() {
		for _, u := range units {
			tied[u] = true
		}
	}
	last := devicemap.Device(0)
	for u, d := range m {
		if tied[u] {
			continue
		}
		if d < last {
			return false
		}
		last = d
	}
	return true
}
