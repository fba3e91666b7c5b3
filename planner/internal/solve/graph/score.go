package graph

import "fmt"

// Load is the load of one device.
type Load struct {
	// Time is the nodes' time. Transfers is the time of sending and receiving.
	Time, Transfers float64
	Size            float64
}

// Total returns the device's time.
func (load Load) Total() float64 { return load.Time + load.Transfers }

// Score evaluates an assignment, place[node] = device, from the definitions. It returns the load of
// each device and the largest load. The error names a broken rule: a node that cannot run on its
// device, a split group, or an exceeded capacity.
func (problem *Problem) Score(place []int) (loads []Load, largest float64, err error) {
	if len(place) != len(problem.Nodes) {
		return nil, 0, fmt.Errorf("%d places for %d nodes", len(place), len(problem.Nodes))
	}
	loads = make([]Load, problem.Devices())
	groups := make(map[int]int)
	for node, device := range place {
		if device < 0 || device >= len(loads) {
			return nil, 0, fmt.Errorf("node %q: there is no device %d", problem.Nodes[node].Name, device)
		}
		loads[device].Time += problem.Nodes[node].Time[problem.KindOf(device)]
		loads[device].Size += problem.Nodes[node].Size
		if first, known := groups[problem.Nodes[node].Group]; known && place[first] != device {
			return nil, 0, fmt.Errorf("nodes %q and %q share a group and not a device", problem.Nodes[first].Name, problem.Nodes[node].Name)
		} else if !known {
			groups[problem.Nodes[node].Group] = node
		}
	}
	problem.transfers(place, loads)
	for device := range loads {
		largest = max(largest, loads[device].Total())
		// Sums of fractions may round; sizes in whole bytes do not.
		if capacity := problem.Kinds[problem.KindOf(device)].Capacity; loads[device].Size > capacity*(1+1e-12) {
			err = fmt.Errorf("device %d holds %.0f bytes, more than its budget of %.0f", device, loads[device].Size, capacity)
		}
	}
	return loads, largest, err
}

// transfers adds the transfers between devices: once on the node's own device, and once on every
// other device that reads it.
func (problem *Problem) transfers(place []int, loads []Load) {
	readers := make([]map[int]bool, len(problem.Nodes))
	for _, edge := range problem.Edges {
		if from, to := place[edge[0]], place[edge[1]]; from != to {
			if readers[edge[0]] == nil {
				readers[edge[0]] = make(map[int]bool)
			}
			readers[edge[0]][to] = true
		}
	}
	pay := func(device int, time float64) {
		if !problem.Kinds[problem.KindOf(device)].FreeTransfers {
			loads[device].Transfers += time
		}
	}
	for node, devices := range readers {
		if len(devices) == 0 {
			continue
		}
		pay(place[node], problem.Nodes[node].Transfer)
		for device := range devices {
			pay(device, problem.Nodes[node].Transfer)
		}
	}
}
