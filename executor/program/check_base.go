package program

// check is a program with the tables that the rules use.
type check struct {
	*Program
	faults faultList

	// stream is an instruction's stream among those of all devices, and place its position there,
	// from 1. Together they are its epoch. events are the instructions of stream 0, then of stream
	// 1, and so on. Those of stream s begin at starts[s].
	stream, place  []int32
	events, starts []int32

	// before is the instruction that must happen before this one by rule. follows is the one that
	// does, because a message or a slot passes between them. Both may be None.
	before, follows []int32
	channels        []messages
	cursor          []int32 // by stream: how many of its instructions the walk could run

	// tokens is which of its micro-batch's decodes a decode is, from 1; the forward before them is
	// 0. It is nil if there are none.
	tokens []int32

	cells []cell
	spans []span // of every buffer
}

// number gives every instruction its epoch.
func (check *check) number() {
	base := make([]int32, len(check.Devices)+1)
	for i := range check.Devices {
		base[i+1] = base[i] + int32(len(check.Devices[i].Streams))
	}
	count := len(check.Instrs)
	check.stream, check.place = make([]int32, count), make([]int32, count)
	check.starts = make([]int32, base[len(base)-1]+1)
	for i := range check.Instrs {
		stream := base[check.Instrs[i].Device] + check.Instrs[i].Stream
		check.starts[stream+1]++
		check.stream[i], check.place[i] = stream, check.starts[stream+1]
	}
	for i := 1; i < len(check.starts); i++ {
		check.starts[i] += check.starts[i-1]
	}
	check.events = make([]int32, count)
	for i := range check.Instrs {
		check.events[check.starts[check.stream[i]]+check.place[i]-1] = int32(i)
	}
	check.before, check.follows = make([]int32, count), make([]int32, count)
	for i := range count {
		check.before[i], check.follows[i] = None, None
	}
}

func (check *check) accesses(index int32) []Access {
	instr := &check.Instrs[index]
	return check.Accesses[instr.FirstAccess:instr.EndAccess]
}

// messages are the instructions of a channel by sequence.
type messages struct{ send, recv, free []int32 }

// span is the cells that a buffer covers: the arena is cut at the borders of all buffers. A buffer
// that receives messages or is unloaded also has a cell of its own. It says whether the contents
// may still be read. own is None for other buffers.
type span struct{ first, end, own int32 }

// cell is a piece of an arena between two borders of buffers, with its last accesses as epochs
// (FastTrack: Flanagan, Freund, PLDI 2009). These are the last write and the last read since, or a
// set of reads that are not ordered among themselves.
type cell struct {
	writer, writerPlace int32 // stream none: nothing wrote it
	reader, readerPlace int32 // stream several: readerPlace is the index in sets
	owner               int32 // the buffer written last
	micro               int32 // the micro-batch that wrote it, or None
	pass                int32 // the routine and op that wrote it, or None
	state               state // of cells that a buffer owns
}

// Special values of a cell's stream: no access, and reads of several streams.
const (
	none    = int32(-1)
	several = int32(-2)
)

// state says whether the contents may be read.
type state uint8

const (
	written  state = iota
	underway       // sent, not received
	freed
	unloaded
	stored // in host memory
)

type epoch struct{ stream, place int32 }
