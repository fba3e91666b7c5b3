package offload_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// leastTravel returns the fewest bytes copied from the host in any map that fits. It tries every
// unit on every device in order and on the host, with tied units together.
func leastTravel(p *planner.Problem) int64 {
	least := int64(math.MaxInt64)
	m := make(devicemap.Map, len(p.Costs.Units))
	var place func(u int, last devicemap.Device, bytes int64)
	place = func(u int, last devicemap.Device, bytes int64) {
		if bytes >= least {
			return
		}
		if u == len(m) {
			for _, f := range devicemap.Check(p.Graph, p.Costs, p.Topology, m.Flatten(p.Graph), nil).Faults {
				if f.Kind == "does-not-fit" || f.Kind == "ties-apart" {
					return
				}
			}
			for _, d := range m {
				if d == 0 { // offloaded units run there
					least = bytes
				}
			}
			return
		}
		for d := last; int(d) < len(p.Topology.Devices); d++ {
			m[u] = d
			place(u+1, d, bytes)
		}
		m[u] = devicemap.CPU
		place(u+1, last, bytes+p.Costs.Units[u].OffloadBytes)
	}
	place(0, 0, 0)
	return least
}

// TestOffloadRandom: exhaustive search finds no map with fewer copied bytes. The bound is at most
// that, and equal if the answer is optimal.
func TestOffloadRandom(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(21, 22))
	var fits, none, best, proved int
	for i := range randomproblem.Samples(400) {
		p := randomproblem.Problem(t, rng)
		p.Pins, p.Together = nil, nil
		w := costmodel.Workload{Mode: []costmodel.Mode{costmodel.Infer, costmodel.Load}[i%2], Batch: 1, Seq: 1, Precision: costmodel.BF16True}
		w, err := estimate.Resolve(p.Graph, w)
		if err != nil {
			t.Fatal(err)
		}
		if p.Costs, err = estimate.Table(p.Graph, w); err != nil {
			t.Fatal(err)
		}
		if len(p.Graph.TiedUnits()) > 0 {
			continue // a tie group may be on any device, which exhaustive search does not try
		}
		for d := range p.Topology.Devices {
			dev := &p.Topology.Devices[d]
			dev.FLOPS, dev.CapacityBytes, dev.ReservedBytes, dev.WorkspaceBytes, dev.ContextBytes = 1, 80+rng.Int64N(700), rng.Int64N(60), rng.Int64N(10), rng.Int64N(20)
		}
		p.Offload = planner.CPU
		sol, err := planner.Solve(t.Context(), p, planner.Settings{})
		want := leastTravel(&p)
		var inf *planner.InfeasibleError
		if errors.As(err, &inf) {
			if want < math.MaxInt64 {
				none++ // a map fits, but the search found none
			}
			continue
		}
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		if sol.Offloaded == nil {
			continue // it fits without offloading
		}
		o := sol.Offloaded
		if o.Bytes < want || o.LowerBound > want || sol.Status == planner.Optimal && o.Bytes != want || sol.LargestShare > 1 {
			t.Fatalf("%d: %v copies %d B (bound %d, %s, share %v), the least is %d", i, sol.Map, o.Bytes, o.LowerBound, sol.Status, sol.LargestShare, want)
		}
		fits++
		if o.Bytes == want {
			best++
		}
		if sol.Status == planner.Optimal {
			proved++
		}
	}
	t.Logf("%d offloaded, %d the best, %d proved; %d not found", fits, best, proved, none)
	if fits < 10 || best < 9*fits/10 || proved < fits/10 || none > fits/20 {
		t.Errorf("%d offloaded, %d the best, %d proved; %d not found", fits, best, proved, none)
	}
}

// TestOffloadTiers: the answer keeps to the host's memory. Bytes that do not fit there are read
// from disk, or are missing.
func TestOffloadTiers(t *testing.T) {
	p := randomproblem.Chain(t, []int64{10, 10, 10, 10, 10, 10}, 20, 10)
	p.Offload = planner.Disk
	p.Topology.HostMemoryBytes = 20
	sol, err := planner.Solve(t.Context(), p, planner.Settings{})
	if err != nil || sol.Offloaded.Bytes != 30 || sol.Offloaded.FromDisk != 10 || sol.Offloaded.LowerBound != 30 || sol.Status != planner.Optimal {
		t.Fatalf("%+v %+v, %v", sol, sol.Offloaded, err)
	}
	p.Offload = planner.CPU
	var no *planner.OffloadError
	if _, err = planner.Solve(t.Context(), p, planner.Settings{}); !errors.As(err, &no) {
		t.Errorf("%v: the host's memory holds 20 B, and 30 B leave", err)
	}
}
