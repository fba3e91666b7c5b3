package page

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// numbered is a name with one number that differs from block to block, as "model.layers.3".
var numbered = regexp.MustCompile(`^(.*?\.)(\d+)((?:\.\D[^.]*)*)$`)

// block is a run of modules that follow one another.
type block struct {
	first, last, prefix, suffix string
	number                      int64
	bytes                       int64
	units                       int
}

func (of *block) name() string {
	if of.units > 1 {
		return fmt.Sprintf("%s – %s", of.first, of.last)
	}
	return of.first
}

// modules lists what modules have throughout. Blocks that follow one another are joined, and the modules
// beyond so many too.
func (page *Page) modules(all []holding, most int) []module {
	var blocks []block
	for _, one := range all {
		if size := one.bytes.total(); size > 0 {
			blocks = joinedTo(blocks, one.owner, size, most)
		}
	}
	out := make([]module, len(blocks))
	for i := range blocks {
		out[i] = module{page.name(blocks[i].name()), blocks[i].bytes, blocks[i].units}
	}
	return out
}

// joinedTo adds a module to blocks: to the last one if it follows that, or if there are so many.
func joinedTo(blocks []block, owner string, size int64, most int) []block {
	next := block{first: owner, last: owner, bytes: size, units: 1, number: -1}
	if parts := numbered.FindStringSubmatch(owner); parts != nil {
		next.prefix, next.suffix = parts[1], parts[3]
		if number, err := strconv.ParseInt(parts[2], 10, 64); err == nil {
			next.number = number
		}
	}
	if len(blocks) > 0 {
		last := &blocks[len(blocks)-1]
		follows := next.number >= 0 && last.number == next.number-1 && last.prefix == next.prefix && last.suffix == next.suffix
		if follows || len(blocks) >= most {
			last.last, last.number = next.last, next.number
			last.bytes += size
			last.units++
			return blocks
		}
	}
	return append(blocks, next)
}

// layers names the modules on each GPU of an engine that serves, whose steps are not followed, and those
// on the host.
func (page *Page) layers(plan *devicemap.Plan) {
	if plan.Workload.Mode != costmodel.Serve {
		return
	}
	on := map[int][]block{}
	add := func(device int, name string) { on[device] = joinedTo(on[device], name, 0, maxModules) }
	for i := range plan.Stages {
		stage := &plan.Stages[i]
		devices := stage.Devices
		if len(devices) == 0 {
			devices = []int{int(stage.Device)}
		}
		for _, name := range stage.Units {
			for _, device := range devices {
				add(device, name)
			}
		}
	}
	whole := len(on) > 0
	for _, entry := range plan.DeviceMap {
		if entry.Device < 0 || !whole {
			add(int(entry.Device), entry.Key)
		}
	}
	for i := range page.GPUs {
		page.GPUs[i].Layers = namesOfBlocks(on[page.GPUs[i].Device])
	}
	if host := namesOfBlocks(on[int(devicemap.CPU)]); host != "" {
		page.Facts = append(page.Facts, fact{Name: "On the CPU", Value: host})
	}
}

func namesOfBlocks(blocks []block) string {
	names := make([]string, len(blocks))
	for i := range blocks {
		names[i] = blocks[i].name()
	}
	return strings.Join(names, ", ")
}
