package chaintime

// deviceStop is a device in an order of devices, with the stops that may come before it. Stop 0 is
// the start, before any device.
type deviceStop struct {
	device int
	before []int
}

// inOrder returns the stops for devices in ascending order, with gaps allowed.
func inOrder(devices int) []deviceStop {
	out := []deviceStop{{device: -1}}
	for device := range devices {
		next := deviceStop{device: device}
		for before := range out {
			next.before = append(next.before, before)
		}
		out = append(out, next)
	}
	return out
}

// anyOrder returns the stops for devices in any order. A stop is the number of used devices of each
// class, and the class of the last. Devices of a class are interchangeable, so they are used in
// ascending order. It returns nil if there are more stops than limit.
func anyOrder(classes [][]int, limit int) []deviceStop {
	kinds := len(classes)
	width := make([]int, kinds) // of a class's count in a state's number
	states := 1
	for i := range classes {
		width[i] = states
		if states *= len(classes[i]) + 1; states > limit {
			return nil
		}
	}
	at := make([]int, states*kinds) // the stop of a state and its last class
	out := []deviceStop{{device: -1}}
	for state := 1; state < states; state++ { // counts only grow, so states are in time order
		for last := range classes {
			used := state / width[last] % (len(classes[last]) + 1)
			if used == 0 {
				continue
			}
			next := deviceStop{device: classes[last][used-1]}
			before := state - width[last]
			if before == 0 {
				next.before = []int{0}
			}
			for i := range classes {
				if count := at[before*kinds+i]; before > 0 && count > 0 {
					next.before = append(next.before, count)
				}
			}
			at[state*kinds+last] = len(out)
			if out = append(out, next); len(out) > limit {
				return nil
			}
		}
	}
	return out
}
