// Package emit writes a plan in the form that an engine reads.
package emit

import (
	"fmt"
	"io"
	"slices"
	"strings"

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
	usage string // with %s for the file's name
}

var targets = map[Engine]target{
	Accelerate: {deviceMap, `AutoModelForCausalLM.from_pretrained(MODEL, device_map=json.load(open(%q)))`},
	MSSwift:    {deviceMap, "swift sft --model MODEL --device_map %s …"},
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

// Usage is how the engine is told to read the file that [Write] wrote.
func Usage(e Engine, file string) string { return fmt.Sprintf(targets[e].usage, file) }

// deviceMap is the plan's map alone: module path → number, "cpu" or "disk".
func deviceMap(w io.Writer, p *devicemap.Plan) error {
	if len(p.DeviceMap) == 0 {
		return fmt.Errorf("the plan for %q has no device map: its strategy is %s", p.Model.Name, p.Workload.Strategy)
	}
	return devicemap.WriteJSON(w, p.DeviceMap)
}
