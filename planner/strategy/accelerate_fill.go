package strategy

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// autoMap is a run of infer_auto_device_map: the first GPU gets modules while they fit, then the
// next. GPU 0 reserves space for the largest remaining layer, which may have to come back from the
// CPU.
type autoMap struct {
	ties    [][]string // names of parameters that are one
	todo    []*module
	limits  []int64
	used    []int64
	device  int // beyond the GPUs: the CPU
	largest largestLayers
	places  map[string]int
}

// largestLayers are the largest of the remaining layers.
type largestLayers struct {
	bytes int64
	names []string
}

// find looks for the largest layers in modules, from the front.
func (largest *largestLayers) find(modules []*module) {
	*largest = largestLayers{}
	var walk func(m *module)
	walk = func(m *module) {
		if !m.isLeaf() {
			for _, child := range m.children {
				walk(child)
			}
			return
		}
		switch {
		case m.bytes > largest.bytes:
			largest.bytes, largest.names = m.bytes, []string{m.name}
		case m.bytes == largest.bytes:
			largest.names = append(largest.names, m.name)
		}
	}
	for _, m := range modules {
		walk(m)
	}
}

// taken forgets a module that is about to be placed.
func (filling *autoMap) taken(m *module) {
	largest := &filling.largest
	largest.names = slices.DeleteFunc(largest.names, func(name string) bool { return within(name, m.name) })
	if len(largest.names) == 0 {
		largest.find(filling.todo)
	}
}

// within reports that a path is a module's or inside it.
func within(path, module string) bool { return strings.HasPrefix(path+".", module+".") }

// next places the first module of the list, splits it, or moves on to the next device.
func (filling *autoMap) next() {
	m := filling.todo[0]
	filling.todo = filling.todo[1:]
	filling.taken(m)
	tied := filling.tiedTo(m)
	together := m.bytes
	for _, other := range tied {
		together += other.bytes
	}
	if filling.device >= len(filling.limits) { // the rest goes to the CPU
		filling.put(m, tied, together)
		return
	}
	spare := filling.limits[filling.device] - filling.used[filling.device]
	if filling.device == 0 {
		spare -= filling.largest.bytes
	}
	switch {
	case together <= spare:
		filling.put(m, tied, together)
	case len(tied) > 0 && m.bytes <= spare && filling.splitTied(m, tied):
	case m.bytes >= spare && !m.isLeaf():
		filling.todo = append(m.parts(), filling.todo...)
		filling.largest.find(filling.todo)
	default:
		filling.device++
		filling.todo = append([]*module{m}, filling.todo...)
	}
}

// put places a module and the modules tied to it.
func (filling *autoMap) put(m *module, tied []*module, bytes int64) {
	if filling.device < len(filling.used) {
		filling.used[filling.device] += bytes
	}
	filling.places[m.name] = filling.device
	for _, other := range tied {
		filling.places[other.name] = filling.device
		filling.todo = slices.DeleteFunc(filling.todo, func(waiting *module) bool { return waiting == other })
	}
}

// tiedTo are the waiting modules with a tied parameter of a module, once for each parameter.
func (filling *autoMap) tiedTo(m *module) []*module {
	var out []*module
	for _, group := range filling.ties {
		inside := func(name string) bool { return within(name, m.name) }
		if !slices.ContainsFunc(group, inside) {
			continue
		}
		for _, name := range group {
			if inside(name) {
				continue
			}
			if i := slices.IndexFunc(filling.todo, func(waiting *module) bool { return strings.HasPrefix(name, waiting.name+".") }); i >= 0 {
				out = append(out, filling.todo[i])
			}
		}
	}
	return out
}

// splitTied replaces the first of the tied modules that can be split by its parts.
func (filling *autoMap) splitTied(m *module, tied []*module) bool {
	for _, other := range tied {
		if other.isLeaf() {
			continue
		}
		i := slices.Index(filling.todo, other)
		filling.todo = slices.Concat([]*module{m}, filling.todo[:i], other.parts(), filling.todo[i+1:])
		filling.largest.find(filling.todo)
		return true
	}
	return false
}

// units are the devices of the units: of the module around a unit, or of its first part with a
// device. A unit of buffers alone may have none, and gets the previous unit's.
func (filling *autoMap) units(graph *modelgraph.Graph) devicemap.Map {
	placed := make(devicemap.Map, len(graph.Units))
	last := 0
	for i := range graph.Units {
		if device, ok := filling.deviceOf(graph.Units[i].Keys); ok {
			last = device
		}
		placed[i] = devicemap.Device(last)
		if last >= len(filling.limits) {
			placed[i] = devicemap.CPU
		}
	}
	return placed
}

func (filling *autoMap) deviceOf(keys []string) (int, bool) {
	for _, key := range keys {
		for path := key; path != ""; path = path[:max(0, strings.LastIndexByte(path, '.'))] {
			if device, ok := filling.places[path]; ok {
				return device, true
			}
		}
		for name, device := range filling.places {
			if within(name, key) {
				return device, true
			}
		}
	}
	device, ok := filling.places[""] // of the whole model
	return device, ok
}
