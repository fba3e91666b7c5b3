package ask

import (
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Placement is what a map is asked to be: what is minimised, and what may sit
// where.
type Placement struct {
	objective, offload string
	pins, together     []string
	Contiguous         bool
}

// Front is the objective that prints several maps.
const Front = "front"

// IsFront reports that several maps are asked for.
func (placement *Placement) IsFront() bool { return placement.objective == Front }

// IsLatency reports that the time of one request is asked for.
func (placement *Placement) IsLatency() bool { return placement.objective == string(planner.Latency) }

// minimised is what one map is asked for; a front's ends are both.
func (placement *Placement) minimised() planner.Objective {
	switch objective := planner.Objective(placement.objective); objective {
	case planner.Time, planner.Latency:
		return objective
	case planner.Memory:
	}
	return planner.Memory
}

const noOffload = "none"

// tier is where units may leave the GPUs for.
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
