package stagesearch

import (
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// Chain is an order's items, their wires and the devices, in flat tables: what
// a move looks at lies together.
type Chain struct {
	nets           *netlist.Netlist
	items, devices int
	// time is indexed by kind × items + item.
	time, size []float64
	// kind, capacity and free are the devices'; number is a device's in the
	// problem: there are at most as many here of a kind as there are items.
	kind     []int
	capacity []float64
	free     []bool
	number   []int
	// before and after are an item's direct neighbours, wires what it touches.
	before, after, wires rows
	// cost is a wire's, members how many items it joins.
	cost    []float64
	members []int32
}

// rows are lists of different lengths, one after the other.
type rows struct{ first, list []int32 }

func (rows *rows) of(i int32) []int32 { return rows.list[rows.first[i]:rows.first[i+1]] }

func flat[number int | int32](lists [][]number) rows {
	out := rows{first: make([]int32, 1, len(lists)+1)}
	for _, list := range lists {
		for _, value := range list {
			out.list = append(out.list, int32(value))
		}
		out.first = append(out.first, int32(len(out.list)))
	}
	return out
}

// maxHeld bounds the table of what each device holds of each wire, of 4 bytes.
const maxHeld = 1 << 25

// NewChain is nil where its tables would be too large. before and after are the
// items' direct neighbours in the order that devices keep.
func NewChain(nets *netlist.Netlist, before, after [][]int) *Chain {
	chain := &Chain{nets: nets, items: len(nets.Nodes), size: nets.Size, before: flat(before), after: flat(after), wires: flat(nets.WiresOf)}
	for kind, count := range nets.Count {
		chain.time = append(chain.time, nets.Time[kind]...)
		for i := range min(count, chain.items) {
			chain.kind, chain.number = append(chain.kind, kind), append(chain.number, nets.First[kind]+i)
			chain.capacity, chain.free = append(chain.capacity, nets.Capacity[kind]), append(chain.free, nets.Free[kind])
		}
	}
	chain.devices = len(chain.kind)
	if (len(nets.Wires)+1)*chain.devices > maxHeld {
		return nil
	}
	for _, wire := range nets.Wires {
		chain.cost, chain.members = append(chain.cost, wire.Cost), append(chain.members, int32(len(wire.Members)))
	}
	return chain
}

// on is an item's time on a device.
func (chain *Chain) on(item, device int32) float64 {
	return chain.time[chain.kind[device]*chain.items+int(item)]
}

// runs says whether an item can run on a device at all.
func (chain *Chain) runs(item, device int32) bool { return !math.IsInf(chain.on(item, device), 1) }

// Spread puts the items of a linear extension on the devices, as many on each,
// in place, the devices numbered as in the problem.
func (chain *Chain) Spread(items, place []int) {
	for i, item := range items {
		place[item] = chain.number[i*chain.devices/len(items)]
	}
}
