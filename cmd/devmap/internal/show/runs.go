package show

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// nothing is the text for a device without units.
const nothing = "nothing"

// runs lists a device's units: numbered modules as layers.0–7, others by name.
func (printer *Printer) runs(placement devicemap.Map, device devicemap.Device) string {
	if placement == nil {
		return "the whole model"
	}
	var parts []string
	var container string
	first, last := -1, -1
	flush := func() {
		switch {
		case first < 0:
			return
		case last > first:
			parts = append(parts, fmt.Sprintf("%s.%d–%d", printer.short[container], first, last))
		default:
			parts = append(parts, fmt.Sprintf("%s.%d", printer.short[container], first))
		}
		first = -1
	}
	for unit, on := range placement {
		if on != device {
			continue
		}
		name, number := numbered(printer.graph.Units[unit].Name)
		if number >= 0 && first >= 0 && name == container && number == last+1 {
			last = number
			continue
		}
		flush()
		if number >= 0 {
			container, first, last = name, number, number
			continue
		}
		parts = append(parts, printer.short[name])
	}
	flush()
	if len(parts) == 0 {
		return nothing
	}
	return strings.Join(parts, ", ")
}

// shortNames returns the shortest unique ending of each unit's path, or of its list's path:
// lm_head, but encoder.layers and decoder.layers.
func shortNames(graph *modelgraph.Graph) map[string]string {
	full := make(map[string]bool)
	for unit := range graph.Units {
		name, _ := numbered(graph.Units[unit].Name)
		full[name] = true
	}
	users := make(map[string]int) // number of paths with an ending
	for name := range full {
		for at := len(name); at >= 0; at = strings.LastIndexByte(name[:at], '.') {
			users[name[at:]]++
		}
	}
	short := make(map[string]string)
	for name := range full {
		short[name] = out.Cell(name)
		for at := strings.LastIndexByte(name, '.'); at >= 0; at = strings.LastIndexByte(name[:at], '.') {
			if users[name[at:]] == 1 && !full[name[at+1:]] {
				short[name] = out.Cell(name[at+1:])
				break
			}
		}
	}
	return short
}

// numbered splits model.layers.7 into model.layers and 7; -1 if the path has no number.
func numbered(name string) (container string, count int) {
	at := strings.LastIndexByte(name, '.')
	if at < 0 {
		return name, -1
	}
	digits := name[at+1:]
	if digits == "" || len(digits) > 9 || strings.Trim(digits, "0123456789") != "" {
		return name, -1
	}
	for _, c := range digits {
		count = 10*count + int(c-'0')
	}
	return name[:at], count
}
