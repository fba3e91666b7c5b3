package cpu

import "github.com/devmap-dev/devmap/executor/program"

// order is a program by streams, each of which takes its lines in turn.
type order struct {
	streams []stream
	// of and place say of an instruction on which stream it is, and how many
	// stand before it there.
	of, place []int32
	// receives are, by channel and sequence, where messages arrive.
	receives [][]int32
}

// stream is one of a device's.
type stream struct {
	device int
	lines  []int32 // of Instrs
}

func orderOf(of *program.Program) order {
	order := order{of: make([]int32, len(of.Instrs)), place: make([]int32, len(of.Instrs)), receives: make([][]int32, len(of.Channels))}
	for device := range of.Devices {
		first := int32(len(order.streams))
		for range of.Devices[device].Streams {
			order.streams = append(order.streams, stream{device: device})
		}
		for index := of.Devices[device].First; index < of.Devices[device].End; index++ {
			at := first + of.Instrs[index].Stream
			stream := &order.streams[at]
			order.of[index], order.place[index] = at, int32(len(stream.lines))
			stream.lines = append(stream.lines, index)
			if instr := &of.Instrs[index]; instr.Op == program.Recv {
				order.receives[instr.Channel] = append(order.receives[instr.Channel], index) // in order of sequences: V3
			}
		}
	}
	return order
}
