package compile

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/executor/program"
)

// compiler is a plan that is being compiled: the results of the passes so far.
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
	above         map[int32]int32 // a buffer → the buffer at the same place, if other streams read both
	moving        map[int32]bool  // buffers that other streams write
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
	// copies are the device's copies of weights that another device owns, by tie.
	copies map[int]*weightCopy
	// Buffers of the stream's region: the stream in inference, its gradient in training, squared
	// norms and their sum, what the caller gets, and generated ids.
	stream, gradient, norms, total, result int32
	ids                                    []int32
	sets                                   int // of moved tensors
}

// weightCopy is one device's copy of a tied weight, which Use reads first.
type weightCopy struct {
	use                    int // the unit
	weights, master, state int32
}

// stage is a longest run of units on one device: a chunk of the device's work.
type stage struct {
	costmodel.Interval     // of units
	number             int // along the model
	device             *device
	chunk              int // its number on the device
	routines           []routine
	// takes and makes are the bytes of a micro-batch's input from the stage before and of its
	// output to the next. takesToken and makesToken are those of one token a sequence.
	takes, makes, takesToken, makesToken int64
	// first and last: it holds the first or the last unit that runs kernels.
	first, last bool
	// Micro-batches in the order of their forwards and of the gradients that they send, and how many
	// sets of saved tensors that takes.
	forwards, backwards []int32
	depth               order.Depth
	// Channels from which it receives and to which it sends.
	act, grad, tok          *channel // to it
	actOut, gradOut, tokOut *channel
	out, dout, token        int32 // buffers of what it sends
}

// routine is a unit that runs kernels, with the units around it that only pass the stream. A stage
// of such units alone has one routine, which copies.
type routine struct {
	costmodel.Interval
	*costmodel.Regions
	index  int32 // in Program.Routines
	number int   // of its stage's
	unit   int   // that runs the kernels
	// target is the routine of its stage into whose input it writes. It is −1 if it writes the
	// stage's output or nothing.
	target int
	ticks  steptime.UnitTicks
	// Buffers. Those of saved tensors have one for each set ([order.Depth]).
	input, saved, late, pending, host                          []int32
	forward, remade, recompute, backward, learn, whole, decode int32
}

// channel is a channel with the buffers of its slots.
type channel struct {
	index int32 // in Program.Channels
	slots []int32
	// order lists the micro-batches as they are sent; position is the place of each in it. A round
	// of them is sent once, or once for every token.
	order, position []int32
	sent, received  int32
}

// tie is a weight that several units use.
type tie struct {
	costmodel.Tie        // its owner and sizes
	name          string // of its copies on devices without the owner
	uses          []tiedUse
}

// tiedUse is one of the units, the owner included, with the channels that send its gradient to the
// other devices that have the weight.
type tiedUse struct {
	unit int
	to   []*channel
}

func (compiler *compiler) mode() costmodel.Mode { return compiler.table.Workload.Mode }

func (compiler *compiler) trains() bool { return compiler.mode() == costmodel.Train }

// stacked reports whether gradients grow into freed activations. With one micro-batch a unit keeps
// nothing after its backward, if that is whole.
func (compiler *compiler) stacked() bool {
	return compiler.trains() && compiler.microBatches == 1 && !compiler.splits() && compiler.table.Workload.OffloadActivations == ""
}

// sequential reports a device map, in which one device works at a time.
func (compiler *compiler) sequential() bool {
	return compiler.table.Workload.Strategy.Traits().Sequential
}
