package main

import (
	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

const noOffload = "none"

// tier is where units may leave the GPUs for.
func (s *shared) tier() planner.Tier {
	if s.offload == noOffload {
		return ""
	}
	return planner.Tier(s.offload)
}

// refuseOffload reports --offload where nothing would heed it.
func (s *shared) refuseOffload(cmd *cobra.Command) error {
	switch {
	case s.offload == noOffload:
		return nil
	case cmd.Name() != "plan":
		return out.Usagef("--offload %s: it is for devmap plan", s.offload)
	case s.objective != string(planner.Memory):
		return out.Usagef("--offload %s --objective %s: what is minimised is the bytes that travel, so that offload goes with --objective memory", s.offload, s.objective)
	case s.mode == string(costmodel.Train):
		return out.Usagef("--offload %s --mode train: Accelerate offloads for inference: its hooks drop the weights after forward, and backward needs them (--mode infer works)", s.offload)
	case s.strategy != string(costmodel.DeviceMap):
		return out.Usagef("--offload %s --strategy %s: units leave a device map (--strategy device-map works)", s.offload, s.strategy)
	case !s.contiguous:
		return out.Usagef("--offload %s --contiguous=false: units leave a contiguous map", s.offload)
	}
	return nil
}

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
