// Package emit writes a plan in the form that an engine reads.
package emit

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Engine is a program that takes a placement.
type Engine string

// The engines.
const (
	// Accelerate reads device_map: dispatch_model, and device_map= of
	// Transformers' from_pretrained.
	Accelerate Engine = "accelerate"
	// MSSwift reads the same object from the file that --device_map names
	// (swift/utils/utils.py: json_parse_to_dict).
	MSSwift Engine = "ms-swift"
)

type target struct {
	write func(w io.Writer, p *devicemap.Plan) error
	usage func(p *devicemap.Plan, file string) string
	// notes are what the user must know of this plan under the engine; "" none.
	notes func(p *devicemap.Plan) string
}

var targets = map[Engine]target{
	Accelerate: {deviceMap, transformers, func(*devicemap.Plan) string { return "" }},
	MSSwift:    {deviceMap, swift, oneProcess},
}

// Engines lists the engines, sorted.
func Engines() []string {
	var names []string
	for e := range targets {
		names = append(names, string(e))
	}
	slices.Sort(names)
	return names
}

// Parse reads an engine's name.
func Parse(s string) (Engine, error) {
	if _, ok := targets[Engine(s)]; ok {
		return Engine(s), nil
	}
	return "", fmt.Errorf("unknown engine %q (built: %s)", s, strings.Join(Engines(), ", "))
}

// Write writes the engine's own file.
func Write(w io.Writer, e Engine, p *devicemap.Plan) error {
	t, ok := targets[e]
	if !ok {
		_, err := Parse(string(e))
		return err
	}
	return t.write(w, p)
}

// Usage is how the engine is told to read the file that [Write] wrote, and to
// run what the plan is for.
func Usage(e Engine, p *devicemap.Plan, file string) string { return targets[e].usage(p, file) }

// Note is what the engine would make of the plan elsewhere than in its usage;
// "" where there is nothing to say.
func Note(e Engine, p *devicemap.Plan) string { return targets[e].notes(p) }

// deviceMap is the plan's map alone: module path → number, "cpu" or "disk". A
// pipeline's flat map has the same form and another meaning.
func deviceMap(w io.Writer, p *devicemap.Plan) error {
	s := p.Workload.Strategy
	switch {
	case s.Traits().Staged:
		return fmt.Errorf("the plan for %q is a pipeline's: its stages run side by side in processes of torch.distributed.pipelining (\"stages\" lists the units of each), and its peaks are theirs; one process with a device map runs the GPUs in turn and holds other bytes on each: plan that with --strategy device-map", p.Model.Name)
	case len(p.DeviceMap) == 0:
		return fmt.Errorf("the plan for %q has no device map: its strategy is %s", p.Model.Name, s)
	case p.Workload.Mode == costmodel.Train && offloads(p):
		return fmt.Errorf("the plan for %q trains units that are on the CPU or disk: Accelerate's hooks run them forward alone", p.Model.Name)
	}
	return devicemap.WriteJSON(w, p.DeviceMap)
}
