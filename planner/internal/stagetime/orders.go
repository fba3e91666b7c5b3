package stagetime

import (
	"context"
	"fmt"
	"math"

	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// maxOrders is the most orders of unequal devices that a pipeline tries.
const maxOrders = 720

// pipeOrder is the problem with its devices in another order.
type pipeOrder struct {
	order []int
	in    *instance.Instance
	peaks *instance.StagePeaks
	costs *pipeCosts
}

func newPipes(ctx context.Context, in *instance.Instance) (*pipes, error) {
	out := &pipes{in: in}
	count := len(in.Topology.Devices)
	own := make([]int, count)
	for device := range own {
		own[device] = device
	}
	all := [][]int{own}
	if in.Ordered() {
		apart := map[int]bool{}
		for _, pin := range in.Pins {
			apart[pin.Device] = true
		}
		if all = instance.Orders(in.Classes(apart), maxOrders); all == nil {
			all = [][]int{own}
			out.notes = append(out.notes, fmt.Sprintf("the %d devices can be ordered in more than %d ways: the stages keep the devices in order", count, maxOrders))
		}
	}
	var failed error
	for _, order := range all {
		if err := out.add(order); err != nil && failed == nil {
			failed = err // skip orders that cannot keep the pins
		}
		if ctx.Err() != nil && len(out.orders) > 0 {
			out.partly = len(out.orders) < len(all)
			break
		}
	}
	if len(out.orders) == 0 {
		return nil, failed
	}
	return out, nil
}

// ring reports that each device has a link to the next, and the last to the first. Interleaved runs
// need that.
func (order *pipeOrder) ring() bool {
	count := len(order.in.Topology.Devices)
	if order.in.Schedule().Kind.Vee() {
		count-- // it goes back the way it came
	}
	for device := range count {
		if !order.in.Topology.Linked(device, (device+1)%len(order.in.Topology.Devices)) {
			return false
		}
	}
	return true
}

// add adds an order of the devices.
func (pipeline *pipes) add(order []int) error {
	permuted := pipeline.in.Permuted(order)
	items, err := permuted.Items()
	if err != nil {
		return err
	}
	peaks := instance.NewStagePeaks(items)
	pipeline.orders = append(pipeline.orders, pipeOrder{order, permuted, peaks, newPipeCosts(peaks)})
	return nil
}

// anyOrder returns a lower bound of every map's step, for any order of devices. A micro-batch runs
// through all units, each on its fastest device, and the devices share all work at best equally.
func (pipeline *pipes) anyOrder() float64 {
	costs := pipeline.orders[0].costs
	var sum, token float64
	for i := range len(costs.forward[0]) - 1 {
		least, tok := math.Inf(1), math.Inf(1)
		for device := range costs.forward {
			if device > 0 && &costs.forward[device][0] == &costs.forward[device-1][0] {
				continue // equal devices
			}
			least = min(least, costs.forward[device][i+1]-costs.forward[device][i]+costs.backward[device][i+1]-costs.backward[device][i])
			tok = min(tok, costs.token[device][i+1]-costs.token[device][i])
		}
		sum, token = sum+least, token+tok
	}
	microBatches := float64(pipeline.in.TimedSchedule().MicroBatches)
	return (max(sum, sum*microBatches/float64(len(costs.forward))) + costs.tokens*token) * (1 - instance.Tolerance)
}

// share returns the largest share of a pipeline with these cuts.
func (order *pipeOrder) share(cuts []int) float64 {
	most := 0.
	for device := range order.in.Topology.Devices {
		most = max(most, order.peaks.Share(device, cuts))
	}
	return most
}

func (order *pipeOrder) unitMap(cuts []int) devicemap.Map { return order.peaks.Map(cuts, nil) }

// within reports that every device is within its cap.
func (order *pipeOrder) within(cuts []int, caps []int64) bool {
	for device, old := range order.order {
		budget := float64(order.in.Topology.Devices[device].Budget())
		if order.peaks.Share(device, cuts)*budget > float64(caps[old])+0.5 {
			return false
		}
	}
	return true
}
