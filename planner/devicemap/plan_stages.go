package devicemap

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/devmap-dev/devmap/costmodel"
)

// stagesFault reports stages that do not match the plan's device map.
func (plan *Plan) stagesFault() *fieldFault {
	if len(plan.Stages) == 0 {
		return nil
	}
	if fault := plan.orderFault(); fault != nil {
		return fault
	}
	stageOf := map[string]int{} // by unit
	for i := range plan.Stages {
		if fault := plan.stageFault(i, stageOf); fault != nil {
			return fault
		}
	}
	agree := agreement{plan: plan, stageOf: stageOf, on: map[string]Device{}, claimed: map[string]bool{}, elsewhere: map[Device]bool{}}
	return agree.fault()
}

// orderFault reports an own order of passes that does not run the plan's stages.
func (plan *Plan) orderFault() *fieldFault {
	if !plan.Workload.Schedule.OwnOrder() {
		return nil
	}
	ranks := map[Device]bool{}
	for i := range plan.Stages {
		ranks[plan.Stages[i].Device] = true
	}
	schedule := costmodel.NewSchedule(&plan.Workload, int64(len(ranks)), int64(len(plan.Stages)/len(ranks)))
	var refused *costmodel.FieldError
	if errors.As(schedule.Check(), &refused) {
		return faultOf("workload."+refused.Field, "%v", refused.Msg)
	}
	return nil
}

// stageFault reports a stage whose own fields are invalid, and records its units.
func (plan *Plan) stageFault(i int, stageOf map[string]int) *fieldFault {
	stage, place := &plan.Stages[i], "stages["+strconv.Itoa(i)+"]"
	switch {
	case stage.Stage != i:
		return faultOf(place+".stage", "%d is not %d, its place", stage.Stage, i)
	case int(stage.Device) >= len(plan.Topology.Devices):
		return faultOf(place+".device", "device %d is not among the %s of the plan's topology", stage.Device, devices(len(plan.Topology.Devices)))
	case i > 0 && stage.Device == plan.Stages[i-1].Device && (!plan.Workload.Schedule.Vee() || 2*i != len(plan.Stages)):
		return faultOf(place+".device", "device %v is that of stage %d too: the two are one stage", stage.Device, i-1)
	case len(stage.Units) == 0:
		return faultOf(place+".units", "empty: a stage has at least one unit")
	case stage.StageTimes != nil && (stage.ForwardSeconds < 0 || stage.BackwardSeconds < 0 || stage.SendSeconds < 0):
		return faultOf(place, "its seconds are less than 0")
	}
	for at, unit := range stage.Units {
		if other, twice := stageOf[unit]; twice {
			return faultOf(fmt.Sprintf("%s.units[%d]", place, at), "%q is in stage %d too", unit, other)
		}
		stageOf[unit] = i
	}
	return nil
}

// agreement compares stages with the device map. A unit is a module of the map, is inside one, or
// contains some. A few units join modules with other names, and only their device is known.
type agreement struct {
	plan      *Plan
	stageOf   map[string]int    // by unit
	on        map[string]Device // the map, by module
	claimed   map[string]bool   // units with a module that the map puts on the same device
	elsewhere map[Device]bool   // devices of units that name no module of the map
}

func (agree *agreement) fault() *fieldFault {
	for _, entry := range agree.plan.DeviceMap {
		agree.on[entry.Key] = entry.Device
	}
	var loose []int // map entries that no unit on their device contains by name
	for at, entry := range agree.plan.DeviceMap {
		if unit, known := agree.unitOf(entry.Key); known && agree.deviceOf(unit) == entry.Device {
			agree.claimed[unit] = true
		} else {
			loose = append(loose, at)
		}
	}
	spare := map[Device]bool{} // devices with such an entry
	for _, at := range loose {
		spare[agree.plan.DeviceMap[at].Device] = true
	}
	if fault := agree.unitsFault(spare); fault != nil {
		return fault
	}
	around := map[string]bool{} // modules that contain units
	for unit := range agree.stageOf {
		for outer := range ancestors(unit) {
			around[outer] = true
		}
	}
	for _, at := range loose {
		entry := agree.plan.DeviceMap[at]
		if !around[entry.Key] && !agree.elsewhere[entry.Device] {
			return faultOf("device_map."+strconv.Quote(entry.Key), "it is on device %v, and no stage there has it: \"stages\" and \"device_map\" must agree", entry.Device)
		}
	}
	return nil
}

// unitsFault reports the first unit that the map puts on another device.
func (agree *agreement) unitsFault(spare map[Device]bool) *fieldFault {
	for i := range agree.plan.Stages {
		stage := &agree.plan.Stages[i]
		for at, unit := range stage.Units {
			device, known := agree.mapped(unit)
			place := fmt.Sprintf("stages[%d].units[%d]", i, at)
			switch {
			case agree.claimed[unit], known && device == stage.Device:
			case known:
				return faultOf(place, "%q is on device %v here, and device_map has it on device %v: the two must agree", unit, stage.Device, device)
			case !spare[stage.Device]:
				return faultOf(place, "device_map has no module %q on device %v: the two must agree", unit, stage.Device)
			default:
				agree.elsewhere[stage.Device] = true
			}
		}
	}
	return nil
}

// unitOf returns the unit that is, or contains, a module.
func (agree *agreement) unitOf(module string) (string, bool) {
	if _, known := agree.stageOf[module]; known {
		return module, true
	}
	for outer := range ancestors(module) {
		if _, known := agree.stageOf[outer]; known {
			return outer, true
		}
	}
	return "", false
}

// mapped returns the map's device for a unit, or for a module around it.
func (agree *agreement) mapped(unit string) (Device, bool) {
	if device, known := agree.on[unit]; known {
		return device, true
	}
	for outer := range ancestors(unit) {
		if device, known := agree.on[outer]; known {
			return device, true
		}
	}
	return Nowhere, false
}

func (agree *agreement) deviceOf(unit string) Device {
	return agree.plan.Stages[agree.stageOf[unit]].Device
}
