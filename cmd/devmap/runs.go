package main

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/planner/devicemap"
)

// nothing is what runs on a device without units.
const nothing = "nothing"

// runs says what a device holds: numbered modules as layers.0–7 (8), others by
// their last name.
func (t *tables) runs(m devicemap.Map, d devicemap.Device) string {
	var parts []string
	var container string
	first, last := -1, -1
	flush := func() {
		if first < 0 {
			return
		}
		s := fmt.Sprintf("%s.%d", container, first)
		if last > first {
			s = fmt.Sprintf("%s.%d–%d (%d)", container, first, last, last-first+1)
		}
		parts = append(parts, s)
		first = -1
	}
	for u, on := range m {
		if on != d {
			continue
		}
		path, number, ok := numbered(t.g.Units[u].Name)
		if ok && first >= 0 && path == container && number == last+1 {
			last = number
			continue
		}
		flush()
		if ok {
			container, first, last = path, number, number
			continue
		}
		parts = append(parts, t.g.Units[u].Name[strings.LastIndexByte(t.g.Units[u].Name, '.')+1:])
	}
	flush()
	if len(parts) == 0 {
		return nothing
	}
	return strings.Join(parts, ", ")
}

// numbered splits model.layers.7 into layers and 7.
func numbered(name string) (container string, n int, ok bool) {
	parts := strings.Split(name, ".")
	if len(parts) < 2 {
		return "", 0, false
	}
	last := parts[len(parts)-1]
	if last == "" || len(last) > 9 || strings.Trim(last, "0123456789") != "" {
		return "", 0, false
	}
	for _, c := range last {
		n = 10*n + int(c-'0')
	}
	return parts[len(parts)-2], n, true
}
