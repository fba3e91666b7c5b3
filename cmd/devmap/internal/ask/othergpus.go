package ask

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/planner"
)

// otherGPUs says how the user would ask for another number of GPUs, or for
// those of another kind: a count as a count, a list with more of its largest,
// a topology file, which no flag alters, in flags of its own.
func (r *Request) otherGPUs(now *costmodel.Topology, mode costmodel.Mode, count int, kind string) (topology *costmodel.Topology, set []costmodel.Setting, without []string) {
	q, n := *r, len(now.Devices)
	more := slices.Repeat([]int{largest(now)}, max(0, count-n))
	switch _, err := strconv.Atoi(r.gpus); {
	case r.topology != "":
		if len(now.Links) > 0 && r.minimised() == planner.Time {
			return nil, nil, nil // the flags have no links, and a step without them says nothing
		}
		q.unfiled(now, count, more, kind)
	case err == nil:
		q.gpus = strconv.Itoa(count)
		if kind != "" {
			q.gpu = kind
		}
	default:
		sizes := strings.Split(r.gpus, ",")
		if kind != "" || len(sizes) != n {
			return nil, nil, nil // another kind has the same sizes
		}
		q.gpus = resized(sizes, count, more)
	}
	q.reserve = slices.Clone(q.reserve)
	for i, reserve := range q.reserve {
		if parts := strings.Split(reserve, ","); len(parts) == n && n > 1 {
			q.reserve[i] = resized(parts, count, more)
		}
	}
	topo, err := q.devices(mode, 0)
	if err != nil {
		return nil, nil, nil
	}
	set, without = r.insteadBy(&q)
	return topo, set, without
}

// insteadBy are the flags that make the command's GPUs those of another.
func (r *Request) insteadBy(q *Request) (set []costmodel.Setting, without []string) {
	differs := func(field, was, is string) {
		if is != was {
			set = append(set, costmodel.Setting{Field: field, Value: is})
		}
	}
	differs("gpus", r.gpus, q.gpus)
	differs("gpu", r.gpu, q.gpu)
	if q.topology != r.topology {
		without = append(without, "topology")
	}
	switch {
	case len(q.reserve) == 0 && len(r.reserve) > 0:
		without = append(without, "reserve")
	case !slices.Equal(q.reserve, r.reserve):
		for _, sizes := range q.reserve {
			set = append(set, costmodel.Setting{Field: "reserve", Value: sizes})
		}
	}
	return set, without
}

// unfiled puts flags in place of a topology file: GPUs of the catalogue as
// they are, else what each may hold.
func (r *Request) unfiled(now *costmodel.Topology, count int, more []int, kind string) {
	r.topology, r.reserve = "", nil
	r.gpus, r.gpu = strconv.Itoa(count), kind
	if kind != "" {
		return
	}
	r.gpu = catalogue.DefaultGPU
	gpu, err := catalogue.Find(now.Devices[0].Name)
	if err == nil {
		r.gpu = now.Devices[0].Name
	}
	listed := gpu.Device("")
	var sizes []string
	same := err == nil
	for i := range now.Devices {
		d := &now.Devices[i]
		sizes = append(sizes, exact(d.Budget()))
		same = same && d.Name == now.Devices[0].Name && d.CapacityBytes == listed.CapacityBytes && d.ReservedBytes == listed.ReservedBytes
	}
	if !same {
		r.gpus = resized(sizes, count, more)
	}
}

// resized is the list of as many sizes: fewer, or with those of the devices
// in more after them.
func resized(sizes []string, count int, more []int) string {
	out := slices.Clone(sizes[:min(count, len(sizes))])
	for _, d := range more {
		out = append(out, sizes[d])
	}
	return strings.Join(out, ",")
}

// largest is the first device of the largest budget.
func largest(t *costmodel.Topology) int {
	best := 0
	for d := range t.Devices {
		if t.Devices[d].Budget() > t.Devices[best].Budget() {
			best = d
		}
	}
	return best
}

// exact is a size as a flag takes it, to the byte.
func exact(bytes int64) string {
	if bytes%(1<<30) == 0 {
		return fmt.Sprintf("%dGiB", bytes>>30)
	}
	return fmt.Sprintf("%dB", bytes)
}
