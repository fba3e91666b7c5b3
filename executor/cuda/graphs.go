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
	graphs []*driver.Graph
	said   *driver.Pinned // where the arg max writes ids for the host
	chain  *schedule.Chain
}

// chain returns the chain that begins at an instruction, or nil.
func (graphs *graphs) chain(first int32) *schedule.Chain { return graphs.chains[first] }

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
			made, err := captureChain(device, stream, all, works.scheduler.Past(indexes[0]))
			works.graphs.made = append(works.graphs.made, made) // after a failure too: free destroys its graphs
			works.graphs.chains[indexes[0]] = made.chain
			return err
		})
	})
}

// captureChain captures a chain, on the device's thread. Its kernels have run once, so that they
// are loaded. Copies and fills of the arena are in no graph: it would refer to memory that a sleep
// unmaps. Ends of buffers are cleared at the first token, which has the given position.
func captureChain(device *device, stream *driver.Stream, all []*prepared, past int64) (captured, error) {
	made := captured{device: device, first: all[0], count: len(all), chain: new(schedule.Chain)}
	for _, one := range all {
		made.chain.Works = append(made.chain.Works, one.Work)
	}
	parts := schedule.Calls{device.setPlace}
	for _, one := range all {
		for _, end := range one.ends {
			parts = append(parts, func(args *schedule.Args) error {
				if args.Past != past {
					return nil
				}
				return args.Queue.Fill(device.lanes.Driver.Address(end.Offset), 0, end.Bytes)
			})
		}
	}
	for len(all) > 0 {
		if all[0].around {
			parts, all = append(parts, all[0].whole()), all[1:]
			continue
		}
		end := 1
		for end < len(all) && !all[end].around {
			end++
		}
		ending := new(kernel.Ending)
		if found := all[end-1].found; end == len(all) && len(found) == 1 {
			pinned, err := driver.Pin(kernel.SaidBytes)
			if err != nil {
				return made, err
			}
			made.said = pinned
			*ending = kernel.Ending{Areas: found[0].areas, Found: found[0].at, Said: pinned.Address()}
		}
		graph, ended, err := captureCalls(stream, all[:end], end == len(all), ending)
		if err != nil {
			return made, err
		}
		made.graphs, all = append(made.graphs, graph), all[end:]
		said := made.said
		if !ended {
			said = nil
		}
		parts = append(parts, func(args *schedule.Args) error { return device.launch(graph, args, said, ending.IDs) })
	}
	made.chain.Give = parts.Give
	return made, nil
}

// launch gives a graph to its queue. If the graph writes ids to the host and the next position, said
// is where, and ids is their address on the GPU. Else said is nil.
func (device *device) launch(graph *driver.Graph, args *schedule.Args, said *driver.Pinned, ids driver.Address) error {
	device.said = nil
	if err := args.Queue.(*driver.Stream).Run(graph); err != nil || said == nil { //nolint:errcheck // there are no others
		return err
	}
	device.said, device.saidFrom = said.Data[args.Past%2*kernel.SaidApart:], ids
	device.kernels.Advanced(args.Past + 1)
	return nil
}

// captureCalls captures work without copies and fills, with kernels fused if they can be. A NaN or
// an infinity reaches the end of the chain, so that only what the last unit passes on is searched.
// ended: the kernels do what the ending asks for.
func captureCalls(stream *driver.Stream, all []*prepared, last bool, ending *kernel.Ending) (graph *driver.Graph, ended bool, err error) {
	var calls []*kernel.Call
	var launches schedule.Calls
	for _, made := range all {
		for run := range made.runs {
			calls, launches = append(calls, made.runs[run].calls...), append(launches, made.runs[run].launches...)
		}
	}
	launches, ended, err = kernel.Fuse(all[0].device.kernels, calls, launches, ending)
	if err != nil {
		return nil, false, err
	}
	for _, pass := range all[len(all)-1].runs {
		if last && !ended {
			launches = append(launches, pass.finite...)
		}
	}
	args := &schedule.Args{Queue: stream, Number: 1}
	graph, err = stream.Capture(func() error { return launches.Give(args) })
	return graph, ended, err
}

// free destroys the graphs of a device, on its thread.
func (graphs *graphs) free(device *device) error {
	var all []error
	for i := range graphs.made {
		if made := &graphs.made[i]; made.device == device {
			for _, graph := range made.graphs {
				all = append(all, graph.Destroy())
			}
			all = append(all, made.said.Free())
			made.graphs, made.said = nil, nil
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
