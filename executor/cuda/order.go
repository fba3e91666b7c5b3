//go:build cuda && linux && cgo && amd64

package cuda

import "github.com/devmap-dev/devmap/executor/program"

// order is a program by streams, each of which takes its lines in turn.
type order struct {
	streams []stream
	of      []int32 // by instruction: its stream
	ends    []ends  // by channel
}

// stream is one of a device's.
type stream struct {
	device, number int
	lines          []int32 // of Instrs
}

// ends are the instructions of a channel, by the sequence of their message.
type ends struct{ sends, receives, frees []int32 }

func orderOf(of *program.Program) order {
	order := order{of: make([]int32, len(of.Instrs)), ends: make([]ends, len(of.Channels))}
	for device := range of.Devices {
		first := int32(len(order.streams))
		for number := range of.Devices[device].Streams {
			order.streams = append(order.streams, stream{device: device, number: number})
		}
		for index := of.Devices[device].First; index < of.Devices[device].End; index++ {
			instr := &of.Instrs[index]
			order.of[index] = first + instr.Stream
			order.streams[order.of[index]].lines = append(order.streams[order.of[index]].lines, index)
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

// put sets all[at], and makes it as long as that takes.
func put(all *[]int32, at, index int32) {
	for int(at) >= len(*all) {
		*all = append(*all, program.None)
	}
	(*all)[at] = index
}
