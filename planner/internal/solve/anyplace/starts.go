package anyplace

import (
	"math"
	"math/rand/v2"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// scatter puts each item on a random device of the kind that is best for it.
func scatter(nets *netlist.Netlist, random *rand.Rand) []int32 {
	place := make([]int32, len(nets.Nodes))
	for item := range place {
		kind := -1
		for k, count := range nets.Count {
			if count > 0 && nets.Size[item] <= nets.Capacity[k] && (kind < 0 || nets.Time[k][item] < nets.Time[kind][item]) {
				kind = k
			}
		}
		place[item] = int32(nets.First[kind] + random.IntN(nets.Count[kind]))
	}
	return place
}

// onePass goes through the items once, so that there is an answer however soon
// the end comes: an item joins the one before unless that device then has more
// than the average, or cannot take it; then it goes where the least is.
func (call *anywhere) onePass(average float64) {
	kind := call.KindOf()
	load, bytes := make([]float64, len(kind)), make([]float64, len(kind))
	place := make([]int32, len(call.Nodes))
	at := 0
	for item := range place {
		can := func(device int) bool {
			return !math.IsInf(call.Time[kind[device]][item], 1) && bytes[device]+call.Size[item] <= call.Capacity[kind[device]]
		}
		if !can(at) || load[at]+call.Time[kind[at]][item] > average {
			least := -1
			for device := range kind {
				if can(device) && (least < 0 || load[device]+call.Time[kind[device]][item] < load[least]+call.Time[kind[least]][item]) {
					least = device
				}
			}
			if least < 0 {
				return
			}
			at = least
		}
		place[item] = int32(at)
		load[at] += call.Time[kind[at]][item]
		bytes[at] += call.Size[item]
	}
	call.take(place, 0, "one pass: each item where the one before is, or where the least is")
}
