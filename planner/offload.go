package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// Tier is where units go that leave the devices.
type Tier string

// The tiers. Under Disk, what the host's memory holds stays in it, where the
// topology says how much that is.
const (
	CPU  Tier = "cpu"
	Disk Tier = "disk"
)

// Offloaded is what left the devices.
type Offloaded struct {
	// Bytes are copied to the first device for a forward; no map has less
	// than LowerBound to copy. Status is what is proved of the two.
	Bytes, LowerBound int64
	Status            Status
	// Stays is what is proved of the largest share where these units leave;
	// the solution's own bound is for whatever leaves.
	Stays certificate.Certificate
	// FromDisk of them are read from disk.
	FromDisk int64
	Units    int
}

// OffloadError says that nothing can be offloaded here.
type OffloadError struct {
	Msg string
	// TooLittle: the tier cannot hold what would have to leave.
	TooLittle bool
}

// Error implements error.
func (e *OffloadError) Error() string { return "--offload: " + e.Msg }

// offload answers for a problem that does not fit: which units leave, so that
// the fewest bytes travel in a forward.
func (p *Problem) offload(ctx context.Context, s Settings, best *Solution, failed error) (*Solution, error) {
	var inf *InfeasibleError
	w := &p.Costs.Workload
	switch {
	case !errors.As(failed, &inf):
		return best, failed
	case w.Mode == costmodel.Train:
		return nil, &OffloadError{Msg: "Accelerate offloads for inference: its hooks drop the weights after forward, and backward needs them (--mode infer works)"}
	case !w.Strategy.Traits().Sequential || p.Anywhere:
		return nil, &OffloadError{Msg: "units leave a contiguous device map (--strategy device-map works)"}
	}
	search, err := newLeaving(p)
	if err != nil {
		return nil, err
	}
	found, bound := search.run(ctx, s)
	if found == nil {
		inf.Offload = search.most(ctx)
		inf.Proved = inf.Proved && search.short()
		return best, failed
	}
	return p.afterOffload(found, bound, search.average(), ctx.Err() != nil)
}

// without is the problem where units have left.
func (p *Problem) without(units []int) *Problem {
	q, table := *p, *p.Costs
	table.Units = slices.Clone(table.Units)
	for _, u := range units {
		table.Units[u] = table.Units[u].Streamed()
	}
	q.Costs, q.offloaded, q.Offload = &table, slices.Sorted(slices.Values(units)), ""
	return &q
}

// staying are the tie groups that have not left: they leave whole.
func staying(tied [][]int, left []int) [][]int {
	return slices.DeleteFunc(slices.Clone(tied), func(units []int) bool { return slices.Contains(left, units[0]) })
}

// place is the best map of what stays; nil where it does not fit, or nothing
// is left on the device that runs what left.
func (p *Problem) place(ctx context.Context, s chain.Settings) *claimed {
	l, fixed, err := p.layout()
	if err != nil {
		return nil
	}
	for g, units := range l.groups {
		if slices.Contains(units, p.offloaded[0]) {
			fixed.groups[g] = 0
		}
	}
	sol, err := l.solve(ctx, fixed, s)
	if err != nil || sol.claim.Value > 1 {
		return nil
	}
	for u, d := range sol.Map {
		if d == 0 && !slices.Contains(p.offloaded, u) {
			return sol
		}
	}
	return nil
}

// afterOffload is the solution in which units are on their tiers. Bytes come
// first: where they are not proved least, the bound of the share is that of
// whatever else may leave.
func (p *Problem) afterOffload(f *left, bound int64, average float64, stopped bool) (*Solution, error) {
	sol, claim := f.sol.Solution, f.sol.claim
	sol.Offloaded = &Offloaded{Units: len(f.units)}
	var held int64
	for _, u := range f.units {
		unit := &p.Costs.Units[u]
		held += unit.Params
		sol.Offloaded.Bytes += unit.Travels
		sol.Map[u] = devicemap.CPU
		if p.Offload == Disk && (p.Topology.HostMemoryBytes == 0 || held > p.Topology.HostMemoryBytes) {
			held -= unit.Params
			sol.Map[u] = devicemap.Disk
			sol.Offloaded.FromDisk += unit.Travels
		}
	}
	if most := p.Topology.HostMemoryBytes; p.Offload == CPU && most > 0 && held > most {
		return nil, &OffloadError{TooLittle: true, Msg: fmt.Sprintf("%v would leave, and the host's memory holds %v, so that %v are missing (--offload disk works)", costmodel.Bytes(held), costmodel.Bytes(most), costmodel.Bytes(held-most))}
	}
	claim.Stopped = claim.Stopped || stopped
	bytes, err := certificate.Claim{Value: f.bytes, LowerBound: float64(bound), Rounding: certificate.Exact, Stopped: claim.Stopped}.Certify(float64(sol.Offloaded.Bytes))
	if err != nil {
		return nil, fmt.Errorf("planner: what leaves: %w", err)
	}
	sol.Offloaded.LowerBound, sol.Offloaded.Status = bound, bytes.Status
	if err := p.certify(sol, claim); err != nil {
		return nil, err
	}
	sol.Offloaded.Stays = sol.Certificate
	if bytes.Status != Optimal {
		claim.LowerBound, claim.Bound = average, "what must stay"
	}
	return sol, p.certify(sol, claim)
}
