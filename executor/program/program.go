// Package program is the form in which a plan runs. It has for every device the instructions of one
// step, the bytes that they touch, and the channels between devices. A [Program] is data: it is
// written and read as text and as JSON. [Program.Check] proves it valid before anything runs it.
//
// Package compile makes a program of a plan, package simulate computes its times, and package
// executor runs it.
package program

// Program is the instructions of all devices, with what they refer to. Its slices are dense: an
// instruction is a few numbers, and all instructions share the arrays of accesses and waits. So a
// million of them are read in a fraction of a second.
type Program struct {
	// Model is the model's name, Plan the digest of the model that the plan is for.
	Model, Plan string
	Devices     []Device
	Buffers     []Buffer
	Channels    []Channel
	Routines    []Routine
	// Instrs are the instructions of device 0, then of device 1, and so on, each device's in the
	// order of its lines.
	Instrs []Instr
	// Accesses and Waits are those of all instructions ([Instr].FirstAccess, FirstWait).
	Accesses []Access
	Waits    []Wait
	// Timed: the program says how long its instructions and messages take. Programs of other
	// authors may not.
	Timed bool
	// Predictions are those of plans for this map: devmap's first, then that of another runtime if
	// the plan was made for one.
	Predictions []Prediction

	// dangling are names that refer to nothing, and other faults that only a reader can see. Check
	// reports them with the rest.
	dangling []Fault
}

// Prediction is what a plan predicted for a runtime.
type Prediction struct {
	Runtime string
	// StepTicks is the duration of a step in picoseconds, Peaks the peak memory
	// of each of Devices, in bytes.
	StepTicks int64
	Peaks     []int64
}

// Device is a GPU of the plan: its arena, and the range of its instructions.
type Device struct {
	ID int32 // of the plan
	// Arena is the size of its arena, Budget the limit of that, in bytes.
	Arena, Budget int64
	// Streams are named in the order of their first instructions.
	Streams    []string
	First, End int32 // of Instrs
}

// Buffer is a range of a device's arena, or of its host memory ([Host]).
type Buffer struct {
	Device        int32 // its index in Devices
	Name          string
	Offset, Bytes int64
	Class         Class
}

// Class says what a buffer has, and so how long it lives.
type Class string

// The classes of buffers.
const (
	Workspace Class = "workspace" // of libraries, throughout
	Weight    Class = "weight"
	Master    Class = "master" // weights in fp32, for the optimizer alone
	State     Class = "state"  // the optimizer's moments
	Gradient  Class = "gradient"
	Cache     Class = "cache" // keys and values
	Feed      Class = "feed"  // token ids, labels
	Saved     Class = "saved" // from forward to backward
	Slot      Class = "slot"  // of a channel
	Stream    Class = "stream"
	Scratch   Class = "scratch"
	Result    Class = "result" // losses, logits, norms
	// Host is memory of the host, which a device's copies reach. Its offsets are from 0.
	Host Class = "host"
)

// Throughout reports whether buffers of the class are there from load to unload.
func (class Class) Throughout() bool {
	switch class {
	case Workspace, Weight, Master, State, Cache, Feed:
		return true
	case Gradient, Saved, Slot, Stream, Scratch, Result, Host:
	}
	return false
}

// HostBytes returns the bytes of host memory that a device's buffers take.
func (program *Program) HostBytes(device int) (bytes int64) {
	for i := range program.Buffers {
		if buffer := &program.Buffers[i]; buffer.Class == Host && int(buffer.Device) == device {
			bytes = max(bytes, buffer.Offset+buffer.Bytes)
		}
	}
	return bytes
}

// Channel carries messages of up to Bytes bytes from one device to another, in order. Message k
// lies in slot k mod Slots. With no slots, sending and receiving a message are one event.
type Channel struct {
	Name     string
	From, To int32 // indexes in Devices
	Slots    int32
	Bytes    int64
	// Ticks is how long a message occupies the stream that sends it, Latency how much later it
	// arrives, in picoseconds.
	Ticks, Latency int64
}

// Routine is the kernels of a chunk: units that run as one instruction.
type Routine struct {
	Name    string
	Units   []string
	Kernels []string // a line each, as text (package recipe)
}

// Op is what an instruction does.
type Op uint8

// The operations. BackwardInput and BackwardWeight are the halves of a backward: the gradient of the
// input, with what the other half needs, and then the gradients of the weights.
const (
	Load Op = iota
	Zero
	Recv
	Send
	Free
	Forward
	Backward
	BackwardInput
	BackwardWeight
	Recompute
	Decode
	Step
	Fence
	Unload
	Store // copies buffers into one of host memory
	Fetch // and back
)

// None is a routine, micro-batch or channel that an instruction does not have. unknown is one that
// a file names and does not declare, which is already a fault.
const (
	None    = int32(-1)
	unknown = int32(-2)
)

// Instr is one instruction.
type Instr struct {
	Device     int32 // index in Devices
	Stream     int32 // index in the device's Streams
	Op         Op
	Routine    int32 // index, or None
	MicroBatch int32 // or None
	Channel    int32 // index, or None
	Sequence   int32 // of the channel's messages
	// Ticks is how long it occupies its stream, in picoseconds; for a send it is the channel's.
	Ticks int64
	// Its accesses are [FirstAccess, EndAccess), its waits [FirstWait, EndWait).
	FirstAccess, EndAccess int32
	FirstWait, EndWait     int32
}

// Access is a buffer that an instruction touches.
type Access struct {
	Buffer int32
	Mode   Mode
}

// Mode is how a buffer is touched.
type Mode uint8

// The modes.
const (
	Read       Mode = iota
	Write           // all of it, whatever was there
	Accumulate      // read and written
)

// Wait is a wait for an instruction, an index in Instrs. Stream is the index of the stream that the
// text names, which must be that instruction's.
type Wait struct{ Instr, Stream int32 }

// Fault is a rule that a program breaks.
type Fault struct {
	Rule string // V1 … V16; "names" if a name or number refers to nothing
	// Device and Instr are indexes, or None.
	Device, Instr int32
	Message       string
}
