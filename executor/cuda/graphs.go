//go:build cuda && linux && cgo && amd64

package cuda

import (
	"errors"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/schedule"
)

// graphs are the captured decode steps: what a device computes for a token of a micro-batch. One
// serves all tokens, because kernels read the position from memory ([kernel.Kernels.SetPlace]).
type graphs struct {
	chains map[int32]*schedule.Chain // by the first instruction
	made   []captured
}

type captured struct {
	device *device
	first  *prepared
	count  int
	graph  *driver.Graph
	chain  *schedule.Chain
}

// capture makes the graphs. If kernels are timed there are none: events are between them.
func (works *works) capture() error {
	if works.times {
		return nil
	}
	works.graphs.chains = make(map[int32]*schedule.Chain)
	return works.scheduler.Chains(func(indexes []int32) error {
		all := make([]*prepared, len(indexes))
		for i, index := range indexes {
			if all[i] = works.cached[index]; all[i] == nil || all[i].moves() {
				return nil
			}
		}
		for i := range works.graphs.made {
			if made := &works.graphs.made[i]; made.first == all[0] && made.count == len(all) {
				works.graphs.chains[indexes[0]] = made.chain
				return nil
			}
		}
		device := all[0].device
		stream := device.stream(int(works.bound.Program.Instrs[indexes[0]].Stream))
		return device.do(func() error {
			made, err := captureChain(device, stream, all)
			if err == nil {
				works.graphs.made = append(works.graphs.made, made)
				works.graphs.chains[indexes[0]] = made.chain
			}
			return err
		})
	})
}

// captureChain captures a chain, on the device's thread. Its kernels have run once, so that they
// are loaded.
func captureChain(device *device, stream *driver.Stream, all []*prepared) (captured, error) {
	calls, err := chained(all)
	if err != nil {
		return captured{}, err
	}
	args := &schedule.Args{Queue: stream, Number: 1}
	graph, err := stream.Capture(func() error {
		for _, call := range calls {
			if err := call(args); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return captured{}, err
	}
	chain := &schedule.Chain{Give: func(args *schedule.Args) error {
		if err := device.kernels.SetPlace(args.Queue, args.Past); err != nil {
			return err
		}
		return args.Queue.(*driver.Stream).Run(graph) //nolint:forcetypeassert // there are no others
	}}
	for _, made := range all {
		chain.Works = append(chain.Works, made.Work)
	}
	return captured{device, all[0], len(all), graph, chain}, nil
}

// chained returns the calls of a chain, with kernels fused where they can be. A NaN or an infinity
// reaches the end of the chain, so that only what the last unit passes on is searched.
func chained(all []*prepared) ([]schedule.Call, error) {
	last := all[len(all)-1]
	var out, launches []schedule.Call
	var calls []*kernel.Call
	device := last.device
	end := func() error {
		fused, err := kernel.Fuse(device.kernels, calls, launches)
		out, calls, launches = append(out, fused...), nil, nil
		return err
	}
	for _, made := range all {
		if made.around {
			if err := end(); err != nil {
				return nil, err
			}
			out = append(out, made.whole())
			continue
		}
		for run := range made.runs {
			calls, launches = append(calls, made.runs[run].calls...), append(launches, made.runs[run].launches...)
		}
	}
	if err := end(); err != nil {
		return nil, err
	}
	if !last.around {
		for run := range last.runs {
			out = append(out, last.runs[run].finite...)
		}
	}
	return out, nil
}

// free destroys the graphs of a device, on its thread.
func (graphs *graphs) free(device *device) error {
	var all []error
	for i := range graphs.made {
		if made := &graphs.made[i]; made.device == device {
			all = append(all, made.graph.Destroy())
			made.device = nil
		}
	}
	return errors.Join(all...)
}

// moves reports whether arguments of the work change with the position, except the position itself.
func (made *prepared) moves() bool {
	for i := range made.runs {
		for _, call := range made.runs[i].calls {
			if kernel.Moves(call) {
				return true
			}
		}
	}
	return false
}
