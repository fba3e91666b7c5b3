package ask

import (
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Placement is the objective and the constraints of a map.
type Placement struct {
	objective, offload string
	pins, together     []string
	Contiguous         bool
}

// Front is the objective that prints several maps.
const Front = "front"

// IsFront reports a request for several maps.
func (placement *Placement) IsFront() bool { return placement.objective == Front }

// IsLatency reports a request for the shortest time of one request.
func (placement *Placement) IsLatency() bool { return placement.objective == string(planner.Latency) }

// minimised returns the objective of one map; for a front it is Memory.
func (placement *Placement) minimised() planner.Objective {
	switch objective := planner.Objective(placement.objective); objective {
	case planner.Time, planner.Latency:
		return objective
	case planner.Memory:
	}
	return planner.Memory
}

const noOffload = "none"

// tier returns the tier for offloaded units; empty if there is none.
func (placement *Placement) tier() planner.Tier {
	if placement.offload == noOffload {
		return ""
	}
	return planner.Tier(placement.offload)
}

// constraints reads pins and together-groups.
func (placement *Placement) constraints() (pins []devicemap.Pin, together [][]string, err error) {
	for _, value := range placement.pins {
		layer, device, ok := strings.Cut(value, "=")
		deviceIndex, err := strconv.Atoi(device)
		if !ok || layer == "" || err != nil {
			return nil, nil, out.Usagef("--pin %q is not LAYER=DEVICE with a device index", value)
		}
		pins = append(pins, devicemap.Pin{Pattern: layer, Device: deviceIndex})
	}
	for _, value := range placement.together {
		names := strings.Split(value, ",")
		if len(names) < 2 {
			return nil, nil, out.Usagef("--together %q names one layer: it takes A,B", value)
		}
		together = append(together, names)
	}
	return pins, together, nil
}
