package netlist

// Around is where the members of wires are that a walk does not pass.
type Around struct {
	// Sides are those of members on one of the two sides: [Neither], [Left], [Taken]; a
	// wire that has some on both is paid and not to be used.
	Sides []byte
	// Outside has members on neither side.
	Outside []bool
}

// The sides that something has whatever is chosen: an item of a walk, or a wire's
// members that are not passed.
const (
	Neither = byte(0)
	Left    = byte(wireOut)
	Taken   = byte(wireIn)
)

// outside tells the wires that have members which are not in the order.
func (nets *Netlist) outside(order []int32) []bool {
	left := make([]int, len(nets.Wires))
	for wire := range left {
		left[wire] = len(nets.Wires[wire].Members)
	}
	for _, item := range order {
		for _, wire := range nets.WiresOf[item] {
			left[wire]--
		}
	}
	out := make([]bool, len(nets.Wires))
	for wire := range out {
		out[wire] = left[wire] > 0
	}
	return out
}
