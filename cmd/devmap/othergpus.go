package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// otherGPUs says how the user would ask for another number of GPUs, or for
// those of another kind: a count as a count, a list with more of its largest,
// a topology file, which no flag alters, in flags of its own.
func (s *shared) otherGPUs(ctx context.Context, now *costmodel.Topology, mode costmodel.Mode, count int, kind string) (strategy.GPUs, bool) {
	q, n := *s, len(now.Devices)
	more := slices.Repeat([]int{largest(now)}, max(0, count-n))
	switch _, err := strconv.Atoi(s.gpus); {
	case s.topology != "":
		if len(now.Links) > 0 && s.minimised() == planner.Time {
			return strategy.GPUs{}, false // the flags have no links, and a step without them says nothing
		}
		q.unfiled(now, count, more, kind)
	case err == nil:
		q.gpus = strconv.Itoa(count)
		if kind != "" {
			q.gpu = kind
		}
	default:
		sizes := strings.Split(s.gpus, ",")
		if kind != "" || len(sizes) != n {
			return strategy.GPUs{}, false // another kind has the same sizes
		}
		q.gpus = resized(sizes, count, more)
	}
	q.reserve = slices.Clone(q.reserve)
	for i, r := range q.reserve {
		if parts := strings.Split(r, ","); len(parts) == n && n > 1 {
			q.reserve[i] = resized(parts, count, more)
		}
	}
	topo, err := q.buildTopology(ctx, mode, 0)
	if err != nil {
		return strategy.GPUs{}, false
	}
	return s.insteadBy(&q, topo), true
}

// insteadBy are the flags that make the command's GPUs those of another.
func (s *shared) insteadBy(q *shared, topo *costmodel.Topology) strategy.GPUs {
	out := strategy.GPUs{Topology: topo}
	set := func(name, was, is string) {
		if is != was {
			out.Set = append(out.Set, "--"+name, is)
		}
	}
	set("gpus", s.gpus, q.gpus)
	set("gpu", s.gpu, q.gpu)
	if q.topology != s.topology {
		out.Without = append(out.Without, "topology")
	}
	switch {
	case len(q.reserve) == 0 && len(s.reserve) > 0:
		out.Without = append(out.Without, "reserve")
	case !slices.Equal(q.reserve, s.reserve):
		for _, r := range q.reserve {
			out.Set = append(out.Set, "--reserve", r)
		}
	}
	return out
}

// unfiled puts flags in place of a topology file: GPUs of the catalogue as
// they are, else what each may hold.
func (s *shared) unfiled(now *costmodel.Topology, count int, more []int, kind string) {
	s.topology, s.reserve = "", nil
	s.gpus, s.gpu = strconv.Itoa(count), kind
	if kind != "" {
		return
	}
	s.gpu = catalogue.DefaultGPU
	gpu, err := catalogue.Find(now.Devices[0].Name)
	if err == nil {
		s.gpu = now.Devices[0].Name
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
		s.gpus = resized(sizes, count, more)
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
