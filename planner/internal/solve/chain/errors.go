package chain

import "fmt"

// ConflictError says that no map satisfies the pins. Two items need devices that the order of the
// chain, or a group, does not allow together.
type ConflictError struct {
	Items   [2]int // in chain order; equal if one item has two pins
	Devices [2]int // the device of each item
	Groups  [2]int // the group whose device the item needs; -1: its own pin
	Across  int    // the group that needs both items on one device; -1: none
}

func (err *ConflictError) Error() string {
	claim := func(i int) string {
		text := fmt.Sprintf("item %d on device %d", err.Items[i], err.Devices[i])
		if err.Groups[i] >= 0 {
			text += fmt.Sprintf(" (follows group %d)", err.Groups[i])
		}
		return text
	}
	s := "chain: pins conflict: " + claim(0) + ", " + claim(1)
	switch {
	case err.Across >= 0:
		s += fmt.Sprintf(", but group %d keeps both on one device", err.Across)
	case err.Items[0] != err.Items[1]:
		s += ", but the chain runs in device order"
	}
	return s
}
