package main

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

func offloadOf(s *planner.Solution) *devicemap.Offload {
	if s.Offloaded == nil {
		return nil
	}
	return &devicemap.Offload{Bytes: s.Offloaded.Bytes, FromDiskBytes: s.Offloaded.FromDisk, LowerBoundBytes: s.Offloaded.LowerBound}
}

// offloaded says what travels.
func (t *tables) offloaded(s *planner.Solution) {
	o := s.Offloaded
	if o == nil {
		return
	}
	from := ""
	switch {
	case o.FromDisk == o.Bytes:
		from = " from disk"
	case o.FromDisk > 0:
		from = " (" + costmodel.Bytes(o.FromDisk).String() + " of it from disk)"
	}
	t.printf("offloaded: %s; %v%s travel to the first GPU in each forward, and at least %v must · %s\n",
		plural(o.Units, "unit"), costmodel.Bytes(o.Bytes), from, costmodel.Bytes(o.LowerBound), o.Status)
}
