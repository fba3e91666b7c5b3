package backendtest

import (
	"fmt"
	"strings"
)

// PassOn returns the text of a program of two devices. The first makes one message after another in
// the same buffer, and the second copies each into a result of its own.
func PassOn(slots, count int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "device 0 arena 256 budget 256\ndevice 1 arena %d budget 65536\n", 256*(max(slots, 1)+count))
	fmt.Fprintf(&text, "channel act[1] 0>1 slots %d bytes 256\nroutine a a\nroutine b b\nbuffer 0 out 0 +256 stream\n", slots)
	for i := range max(slots, 1) {
		fmt.Fprintf(&text, "buffer 1 slot[%d] %d +256 slot\n", i, 256*i)
	}
	for i := range count {
		fmt.Fprintf(&text, "buffer 1 taken[%d] %d +256 result\n", i, 256*(max(slots, 1)+i))
	}
	for i := range count {
		after := ""
		if i > 0 {
			after = fmt.Sprintf(" after to1:0.%d", 2*i-1)
		}
		fmt.Fprintf(&text, "0.%d compute forward a mb%d >out%s\n", 2*i, i, after)
		fmt.Fprintf(&text, "0.%d to1 send mb%d act[1]#%d out after compute:0.%d\n", 2*i+1, i, i, 2*i)
	}
	for i := range count {
		slot := i % max(slots, 1)
		fmt.Fprintf(&text, "1.%d compute recv mb%d act[1]#%d >slot[%d]\n1.%d compute forward b mb%d slot[%d] >taken[%d]\n1.%d compute free act[1]#%d\n",
			3*i, i, i, slot, 3*i+1, i, slot, i, 3*i+2, i)
	}
	return text.String()
}
