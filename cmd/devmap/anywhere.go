package main

import (
	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/strategy"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// refuseAnywhere reports --contiguous=false where nothing would heed it. check
// judges the map as it is, and estimate's other rows have no device map.
func (s *shared) refuseAnywhere(cmd *cobra.Command) error {
	f := cmd.Flags().Lookup("contiguous")
	if f == nil || s.contiguous || cmd.Name() == "check" {
		return nil
	}
	if s.strategy != string(costmodel.DeviceMap) && (cmd.Name() == "plan" || s.strategy != string(costmodel.Auto)) {
		return out.Usagef("--contiguous=false --strategy %s: any assignment is for --strategy device-map; under the others the order of the stages, or no placement at all, is the strategy's own", s.strategy)
	}
	if s.objective == front {
		return out.Usagef("--contiguous=false --objective %s: a front is searched among contiguous maps; any assignment is for --objective memory or time", s.objective)
	}
	return nil
}

// anywhereFlag is what reproduces a row that may use any assignment.
func anywhereFlag(r *strategy.Row, anywhere bool) []string {
	if !anywhere || !r.Workload.Strategy.Traits().Sequential {
		return nil
	}
	return []string{"--contiguous=false"}
}
