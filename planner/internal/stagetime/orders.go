package stagetime

import (
	"context"
	"fmt"
	"math"

	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// mostOrders is up to how many orders of unequal devices a pipeline tries.
const mostOrders = 720

// pipeOrder is the problem with its devices in another order.
type pipeOrder struct {
	order []int
	in    *instance.Instance
	peaks *instance.StagePeaks
	costs *pipeCosts
}

func newPipes(ctx context.Context, in *instance.Instance) (*pipes, error) {
	out := &pipes{in: in}
	n := len(in.Topology.Devices)
	own := make([]int, n)
	for d := range own {
		own[d] = d
	}
	all := [][]int{own}
	if in.Ordered() {
		apart := map[int]bool{}
		for _, pin := range in.Pins {
			apart[pin.Device] = true
		}
		if all = instance.Orders(in.Classes(apart), mostOrders); all == nil {
			all = [][]int{own}
			out.notes = append(out.notes, fmt.Sprintf("the %d devices can be ordered in more than %d ways: the stages keep the devices in order", n, mostOrders))
		}
	}
	var failed error
	for _, order := range all {
		if err := out.add(order); err != nil && failed == nil {
			failed = err // pins that this order cannot keep leave it out
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

// ring reports that each device has a link to the next, and the last to the
// first: what runs that go round the devices need.
func (o *pipeOrder) ring() bool {
	n := len(o.in.Topology.Devices)
	for d := range n {
		if !o.in.Topology.Linked(d, (d+1)%n) {
			return false
		}
	}
	return true
}

// add takes an order in.
func (s *pipes) add(order []int) error {
	permuted := s.in.Permuted(order)
	items, err := permuted.Items()
	if err != nil {
		return err
	}
	peaks := instance.NewStagePeaks(items)
	s.orders = append(s.orders, pipeOrder{order, permuted, peaks, newPipeCosts(peaks)})
	return nil
}

// anyOrder is a step that no map is below, whatever the order of devices: a
// micro-batch through all units, each on its fastest device, and all of the
// work over all devices.
func (s *pipes) anyOrder() float64 {
	c := s.orders[0].costs
	var sum, token float64
	for i := range len(c.forward[0]) - 1 {
		least, tok := math.Inf(1), math.Inf(1)
		for d := range c.forward {
			least = min(least, c.forward[d][i+1]-c.forward[d][i]+c.backward[d][i+1]-c.backward[d][i])
			tok = min(tok, c.token[d][i+1]-c.token[d][i])
		}
		sum, token = sum+least, token+tok
	}
	m := float64(s.in.Schedule().MicroBatches)
	return (max(sum, sum*m/float64(len(c.forward))) + c.tokens*token) * (1 - instance.Tolerance)
}

// share is the largest share of a pipeline with these cuts.
func (o *pipeOrder) share(cuts []int) float64 {
	most := 0.
	for d := range o.in.Topology.Devices {
		most = max(most, o.peaks.Share(d, cuts))
	}
	return most
}

func (o *pipeOrder) unitMap(cuts []int) devicemap.Map { return o.peaks.Map(cuts, nil) }

// within reports that every device keeps its cap.
func (o *pipeOrder) within(cuts []int, caps []int64) bool {
	for d, old := range o.order {
		budget := float64(o.in.Topology.Devices[d].Budget())
		if o.peaks.Share(d, cuts)*budget > float64(caps[old])+0.5 {
			return false
		}
	}
	return true
}
