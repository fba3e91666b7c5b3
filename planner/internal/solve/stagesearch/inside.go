package stagesearch

// inside is a stage whose two ends move: what it comes to is kept up to date item
// by item.
type inside struct {
	*Chain
	// held is what the stage holds of each wire; left and right say whether an item
	// is before it, and before its end.
	held        []int32
	left, right []bool
	content
}

// content is what a stage comes to: its load, its bytes, and how many items are
// where they cannot be: before the stage and not before its end, or on a device
// that does not run them.
type content struct {
	device      int32
	load, bytes float64
	wrong       int
}

func newInside(chain *Chain) inside {
	return inside{
		Chain: chain, held: make([]int32, len(chain.cost)), left: make([]bool, chain.items), right: make([]bool, chain.items),
	}
}

// empty is a stage of a device, of nothing.
func (stage *inside) empty(device int32) {
	stage.content = content{device: device}
	clear(stage.held)
}

// toggle takes an item to the other side of one end of the stage.
func (stage *inside) toggle(item int32, end []bool) {
	stage.count(item, -1)
	end[item] = !end[item]
	stage.count(item, 1)
}

// count adds what an item is to the stage, or takes it off.
func (stage *inside) count(item int32, sign int32) {
	left, right := stage.left[item], stage.right[item]
	switch {
	case left == right:
	case left || !stage.runs(item, stage.device):
		stage.wrong += int(sign)
	default:
		stage.load += float64(sign) * stage.on(item, stage.device)
		stage.bytes += float64(sign) * stage.size[item]
		stage.pays(item, sign)
	}
}

// pays adds an item to what the stage holds of its wires, or takes it off.
func (stage *inside) pays(item, sign int32) {
	free := stage.free[stage.device]
	for _, wire := range stage.wires.of(item) {
		was, members := stage.held[wire], stage.members[wire]
		is := was + sign
		stage.held[wire] = is
		if free {
			continue
		}
		paid, pays := was > 0 && was < members, is > 0 && is < members
		switch {
		case pays && !paid:
			stage.load += stage.cost[wire]
		case paid && !pays:
			stage.load -= stage.cost[wire]
		default:
		}
	}
}
