package chaintime

// stop is a device in an order of devices: which it is, and which stops may
// come before it. Stop 0 is the start, where no device has a unit yet.
type stop struct {
	device int
	before []int
}

// inOrder are the stops where devices follow each other by number, some left
// out.
func inOrder(devices int) []stop {
	out := []stop{{device: -1}}
	for d := range devices {
		s := stop{device: d}
		for before := range out {
			s.before = append(s.before, before)
		}
		out = append(out, s)
	}
	return out
}

// anyOrder are the stops where devices follow each other in any order: a stop
// is how many devices of each class were used, and the class of the last. Of
// a class, whose devices are alike, they are used by number. It is nil where
// there are more stops than most.
func anyOrder(classes [][]int, most int) []stop {
	c := len(classes)
	width := make([]int, c) // of a class's count in the number of a state
	states := 1
	for i := range classes {
		width[i] = states
		if states *= len(classes[i]) + 1; states > most {
			return nil
		}
	}
	at := make([]int, states*c) // the stop of a state and its last class
	out := []stop{{device: -1}}
	for state := 1; state < states; state++ { // counts only grow, so this is an order in time
		for last := range classes {
			used := state / width[last] % (len(classes[last]) + 1)
			if used == 0 {
				continue
			}
			s := stop{device: classes[last][used-1]}
			before := state - width[last]
			if before == 0 {
				s.before = []int{0}
			}
			for i := range classes {
				if n := at[before*c+i]; before > 0 && n > 0 {
					s.before = append(s.before, n)
				}
			}
			at[state*c+last] = len(out)
			if out = append(out, s); len(out) > most {
				return nil
			}
		}
	}
	return out
}
