package schedule

import "github.com/devmap-dev/devmap/executor/program"

// Order is a program by streams. Each stream takes its lines in order.
type Order struct {
	Streams []Stream
	Of      []int32 // by instruction: its stream
	ends    []ends  // by channel
}

// Stream is a stream of a device.
type Stream struct {
	Device, Number int
	Lines          []int32 // indexes in Instrs
}

// ends are the instructions of a channel, by the sequence of their messages.
type ends struct{ sends, receives, frees []int32 }

func orderOf(of *program.Program) Order {
	order := Order{Of: make([]int32, len(of.Instrs)), ends: make([]ends, len(of.Channels))}
	for device := range of.Devices {
		first := int32(len(order.Streams))
		for number := range of.Devices[device].Streams {
			order.Streams = append(order.Streams, Stream{Device: device, Number: number})
		}
		for index := of.Devices[device].First; index < of.Devices[device].End; index++ {
			instr := &of.Instrs[index]
			stream := &order.Streams[first+instr.Stream]
			order.Of[index], stream.Lines = first+instr.Stream, append(stream.Lines, index)
			switch instr.Op { //nolint:exhaustive // the others are no end of a channel
			case program.Send:
				put(&order.ends[instr.Channel].sends, instr.Sequence, index)
			case program.Recv:
				put(&order.ends[instr.Channel].receives, instr.Sequence, index)
			case program.Free:
				put(&order.ends[instr.Channel].frees, instr.Sequence, index)
			}
		}
	}
	return order
}

// put sets all[at], and extends the slice if needed.
func put(all *[]int32, at, index int32) {
	for int(at) >= len(*all) {
		*all = append(*all, program.None)
	}
	(*all)[at] = index
}

// Computes reports whether an operation runs kernels.
func Computes(op program.Op) bool { return op.Runs() || op == program.Step }
