package ask

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Contradicted refuses the flags that say another workload or other devices than
// a plan: what is played is the plan.
func (request *Request) Contradicted(plan *devicemap.Plan) error {
	for i := range flags {
		f := &flags[i]
		if f.field == nil || !request.Given(f.name) {
			continue
		}
		given, planned := valueOf(f.field.Ref(&request.work)), valueOf(f.field.Ref(&plan.Workload))
		if given != planned {
			return out.Usagef("--%s %s contradicts the plan, which is for --%s %s: leave it out, or plan again", f.name, given, f.name, planned)
		}
	}
	return request.otherDevices(plan)
}

// otherDevices refuses devices that are not the plan's, as far as the flags say
// what they are: a count says nothing of their kind.
func (request *Request) otherDevices(plan *devicemap.Plan) error {
	if !request.Given("gpus", "gpu", "topology", "reserve") {
		return nil
	}
	asked, err := request.devices(plan.Workload.Mode, len(plan.Topology.Devices))
	if err != nil {
		return err
	}
	_, counted := strconv.Atoi(request.gpus)
	kind, sizes := request.Given("gpu", "topology"), request.gpus != "" && counted != nil
	same := len(asked.Devices) == len(plan.Topology.Devices)
	for i := 0; same && i < len(asked.Devices); i++ {
		given, planned := asked.Devices[i], plan.Topology.Devices[i]
		reserved := given.ReservedBytes == planned.ReservedBytes || !request.Given("reserve", "topology")
		size := given.CapacityBytes == planned.CapacityBytes || !sizes && !kind
		same = reserved && size && (given.Name == planned.Name || !kind)
	}
	if !same {
		return out.Usagef("%s: the plan is for %d GPUs, which are others or have other room: leave it out, or plan again", request.devicesGiven(), len(plan.Topology.Devices))
	}
	return nil
}

// Idle refuses the flags of a workload, of devices and of a plan, where a program
// has all of that in it.
func (request *Request) Idle() error {
	for i := range flags {
		f := &flags[i]
		ofPlan := f.field != nil || slices.Contains([]string{"gpus", "gpu", "topology", "reserve", "model", "schedule-file"}, f.name)
		if ofPlan && request.Given(f.name) {
			return out.Usagef("--%s is for a plan: a program says all that is run, and where", f.name)
		}
	}
	return nil
}

// devicesGiven are the flags that were given of those that say what the GPUs are.
func (request *Request) devicesGiven() string {
	var given []string
	for _, name := range []string{"gpus", "gpu", "topology", "reserve"} {
		if request.Given(name) {
			given = append(given, "--"+name)
		}
	}
	return strings.Join(given, " ")
}

// valueOf prints what a pointer to a field points to.
func valueOf(field any) string {
	value := reflect.ValueOf(field).Elem()
	if value.Kind() == reflect.Slice {
		texts := make([]string, value.Len())
		for i := range texts {
			texts[i] = fmt.Sprint(value.Index(i))
		}
		return strings.Join(texts, ",")
	}
	return fmt.Sprint(value)
}
