package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// explain says what binds, why no map is better, and the next-best changes,
// each tried out.
func (t *tables) explain(ctx context.Context, p planner.Problem, s *planner.Solution) {
	d := &s.Devices[s.Bottleneck]
	t.printf("binding: GPU %d at its peak, %s; it runs %s\n", s.Bottleneck, d.Predicted.PeakAt, t.runs(s.Map, devicemap.Device(s.Bottleneck)))
	t.printf("bound: %s, after %s\n", boundReason(s), plural(s.Probes, "target"))
	helps := slices.Concat(devicesTried(ctx, p), tried(ctx, p, s.Value))
	for _, h := range helps {
		t.printf("change: %s\n", h)
	}
	if len(helps) == 0 {
		t.printf("change: none was found that lowers the largest share\n")
	}
}

// boundReason says which argument the lower bound rests on.
func boundReason(s *planner.Solution) string {
	switch s.Bound {
	case "largest unit":
		return "largest unit (one unit, or one tie group, takes that much by itself)"
	case "average":
		return "average (all bytes over all budgets)"
	case "search":
		return "search (every smaller share was refuted)"
	}
	return s.Bound
}

// devicesTried plans for one GPU fewer and one more.
func devicesTried(ctx context.Context, p planner.Problem) []string {
	var out []string
	n := len(p.Topology.Devices)
	for _, count := range []int{n - 1, n + 1} {
		if count < 1 || count > costmodel.MaxDevices {
			continue
		}
		q := p
		topo := costmodel.Topology{Devices: slices.Clone(p.Topology.Devices)}
		if count > n {
			topo.Devices = append(topo.Devices, topo.Devices[n-1])
		}
		topo.Devices = topo.Devices[:count]
		q.Topology = &topo
		if s := attempt(ctx, q); s != nil {
			out = append(out, fmt.Sprintf("%s: %s", plural(count, "GPU"), outcome(s)))
		}
	}
	return out
}
