package compile

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// compiler is a plan on its way: what each pass has found out so far.
type compiler struct {
	out           *program.Program
	table         *costmodel.Table
	topology      *costmodel.Topology
	times         *steptime.Ticks
	places        []int // the device of every unit
	microBatches  int
	perChannel    int // the messages that a channel of the stream holds
	tokens        int // generated after the first
	units         []unit
	stages        []stage
	devices       []device  // as many as the topology has
	ranks         []*device // those that hold units, in the order of their first stage
	channels      []*channel
	above         map[int32]int32 // buffers at the place of another that other streams read too
	ids           *channel        // of generated tokens, back to the first unit's device
	ties          []tie
	norms, totals []*channel // of squared norms towards the first rank, and of their sum back
}

// unit is a unit of the model on its device. Buffers are indexes in
// [program.Program.Buffers], or program.None.
type unit struct {
	*costmodel.Regions
	name   string // as programs write it
	device int32
	ties   []int // of weights that it reads and another unit owns

	weights, master, state, grads, cache, feed int32
}

// device is one GPU, with its stages in order of execution.
type device struct {
	index   int32
	stages  []*stage
	actions []order.Action
	// copies are of weights whose owner is on another device, by tie.
	copies map[int]*weightCopy
	// Buffers of the stream's region: the stream in inference, its gradient
	// in training, generated ids, norms and their sum, and what the caller gets.
	stream, gradient, norms, total, result int32
	ids                                    []int32
}

// weightCopy is one device's copy of a tied weight, which Use reads first.
type weightCopy struct {
	use                    int // the unit
	weights, master, state int32
}

func newCompiler(graph *modelgraph.Graph, table *costmodel.Table, topology *costmodel.Topology, placement devicemap.Map) (*compiler, error) {
	work := &table.Workload
	if len(placement) != len(table.Units) || len(graph.Units) != len(table.Units) {
		return nil, fmt.Errorf("a map of %d units and costs of %d for a model of %d", len(placement), len(table.Units), len(graph.Units))
	}
	compiler := &compiler{
		out: &program.Program{Timed: true}, table: table, topology: topology, times: steptime.TicksOf(table, topology),
		perChannel: int(costmodel.StageRulesOf(work.Runtime).Slots), microBatches: int(max(1, work.MicroBatches)), tokens: int(work.NewTokens),
		above: make(map[int32]int32), units: make([]unit, len(table.Units)), devices: make([]device, len(topology.Devices)),
	}
	for index := range compiler.devices {
		compiler.devices[index].index = int32(index)
	}
	names := newNames()
	for index := range compiler.units {
		place := placement[index]
		if place < 0 || int(place) >= len(topology.Devices) {
			return nil, fmt.Errorf("%s is on %v: only units on devices have a program", graph.Units[index].Name, place)
		}
		compiler.places = append(compiler.places, int(place))
		compiler.units[index] = unit{
			Regions: &table.Units[index].Regions, name: names.take(graph.Units[index].Name), device: int32(place),
			weights: program.None, master: program.None, state: program.None, grads: program.None, cache: program.None, feed: program.None,
		}
	}
	compiler.tie()
	return compiler, compiler.stage(graph)
}

// program runs the passes after the stages.
func (compiler *compiler) program(orders [][]order.Action) (*program.Program, error) {
	if compiler.mode() == costmodel.Load {
		compiler.out.Routines = nil // nothing runs
	} else {
		if err := compiler.order(orders); err != nil {
			return nil, err
		}
		if err := compiler.connect(); err != nil {
			return nil, err
		}
	}
	compiler.arenas()
	for index := range compiler.out.Devices {
		if device := &compiler.out.Devices[index]; device.Arena > device.Budget {
			return nil, fmt.Errorf("device %d: an arena of %v, and its budget is %v", device.ID, costmodel.Bytes(device.Arena), costmodel.Bytes(device.Budget))
		}
	}
	compiler.lower()
	return compiler.out, nil
}

func (compiler *compiler) mode() costmodel.Mode { return compiler.table.Workload.Mode }

func (compiler *compiler) trains() bool { return compiler.mode() == costmodel.Train }

// stacked reports that gradients grow into freed activations: with one
// micro-batch nothing of a unit is kept once its backward has run.
func (compiler *compiler) stacked() bool { return compiler.trains() && compiler.microBatches == 1 }

// sequential reports a device map, in which one device works at a time.
func (compiler *compiler) sequential() bool {
	return compiler.table.Workload.Strategy.Traits().Sequential
}
