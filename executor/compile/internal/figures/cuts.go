package main

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// scattered returns a device map whose runs are on any devices, some on the same. Units with tied
// weights share a device, as device maps require.
func scattered(set *setting, random func(int) int, devices int) devicemap.Map {
	out := make(devicemap.Map, len(set.table.Units))
	for unit := range out {
		out[unit] = devicemap.Device(random(devices))
		if unit > 0 && random(3) > 0 {
			out[unit] = out[unit-1]
		}
	}
	together(set, out)
	return out
}

// together puts units that share weights on one device.
func together(set *setting, placement devicemap.Map) {
	for unit := range placement {
		for number, tied := range set.table.Units[unit].Regions.Tied {
			if number == 0 {
				placement[unit] = placement[tied.Owner]
			}
			placement[tied.Owner] = placement[unit]
		}
	}
}

// everyCut compiles small models cut at every set of borders between units, on as many devices as
// there are runs. It also compiles a device map with units on any of three devices.
func everyCut(page *page, asked scope) error {
	page.printf("every cut at unit borders of models with one and two blocks:\n\n%-14s%9s%9s%9s\n", "family", "units", "programs", "devices")
	for number := 0; number < len(families); number += asked.every {
		family := &families[number]
		programs, devices, units := 0, 0, 0
		for layers := 1; layers <= 2; layers++ {
			graph, err := family.graph(layers)
			if err != nil {
				return err
			}
			units = len(graph.Units)
			for index := range kinds {
				kind := &kinds[index]
				if family.infers && (kind.workload.Mode == costmodel.Train || kind.workload.NewTokens > 0) {
					continue
				}
				for _, microBatches := range []int{1, 3} {
					for _, order := range []costmodel.ScheduleKind{costmodel.OneFOneB, ""} {
						set, err := kind.set(graph, order, microBatches, units)
						if err != nil {
							return err
						}
						more, err := set.cutEverywhere(asked.every)
						if err != nil {
							return fmt.Errorf("%s, %s: %w", family.name, kind.name, err)
						}
						programs, devices = programs+more[0], devices+more[1]
					}
				}
			}
		}
		page.printf("%-14s%9d%9d%9d\n", family.name, units, programs, devices)
	}
	return nil
}

// cutEverywhere compiles every cut. It returns the numbers of programs and devices.
func (set *setting) cutEverywhere(every int) (count [2]int, err error) {
	units := len(set.table.Units)
	seen := make(map[string]bool)
	try := func(placement devicemap.Map) error {
		key := fmt.Sprint(placement)
		if seen[key] {
			return nil
		}
		seen[key] = true
		shares, err := set.judge(placement, "cut")
		count[0], count[1] = count[0]+1, count[1]+len(shares)
		return err
	}
	if set.table.Workload.Strategy.Traits().Staged {
		for borders := 0; borders < 1<<(units-1); borders += every {
			placement := make(devicemap.Map, units)
			for unit := 1; unit < units; unit++ {
				placement[unit] = placement[unit-1] + devicemap.Device(borders>>(unit-1)&1)
			}
			if err := try(placement); err != nil {
				return count, err
			}
		}
		return count, nil
	}
	const devices = 3
	all := 1
	for range min(units, 6) {
		all *= devices
	}
	for number := 0; number < all; number += every {
		placement := make(devicemap.Map, units)
		for unit, rest := 0, number; unit < units; unit, rest = unit+1, rest/devices {
			placement[unit] = devicemap.Device(rest % devices)
		}
		together(set, placement)
		if err := try(slices.Clone(placement)); err != nil {
			return count, err
		}
	}
	return count, nil
}
