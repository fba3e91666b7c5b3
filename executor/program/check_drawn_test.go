package program

import (
	"fmt"
	"strings"
	"testing"
)

// pipeline describes a training program as an engine would run it, written here
// by hand: 1F1B, a ring of saved activations, slots, a tied embedding, norms.
type pipeline struct{ devices, micros, units, slots int }

// drawing is the text of a program as it grows.
type drawing struct {
	pipeline
	head, lines strings.Builder
	count       []int            // of lines, by device
	offset      []int            // of the next buffer, by device
	compute     []int            // the last line of stream compute, by device
	last        []map[string]int // by device: the line that a later one waits for
	sequence    map[string]int   // of channels' ends
}

func (draw *drawing) buffer(device int, name string, bytes int, class string) {
	fmt.Fprintf(&draw.head, "buffer %d %s %d +%d %s\n", device, name, draw.offset[device], bytes, class)
	draw.offset[device] += bytes
}

// shared is a buffer at the place of another one.
func (draw *drawing) shared(device int, name string, offset, bytes int, class string) {
	fmt.Fprintf(&draw.head, "buffer %d %s %d +%d %s\n", device, name, offset, bytes, class)
}

func (draw *drawing) line(device int, format string, args ...any) int {
	number := draw.count[device]
	fmt.Fprintf(&draw.lines, "%d.%d %s\n", device, number, fmt.Sprintf(format, args...))
	draw.count[device]++
	if strings.HasPrefix(format, "compute ") {
		draw.compute[device] = number
	}
	return number
}

// next is the sequence of a channel's next send, recv or free.
func (draw *drawing) next(end string) int {
	number := draw.sequence[end]
	draw.sequence[end]++
	return number
}

func (draw *drawing) unit(device, unit int) string { return fmt.Sprintf("u%d.%d", device, unit) }

// send puts a send behind the line that made the message.
func (draw *drawing) send(device, to int, channel, micro, buffer string) {
	number := draw.line(device, "to%d send%s %s#%d %s after compute:%d.%d", to, micro, channel, draw.next("send "+channel), buffer,
		device, draw.compute[device])
	draw.last[device][buffer] = number
}

// after is the wait of a line that writes what was sent last from a buffer.
func (draw *drawing) after(device, to int, buffer string) string {
	number, sent := draw.last[device][buffer]
	if !sent {
		return ""
	}
	return fmt.Sprintf(" after to%d:%d.%d", to, device, number)
}

func (draw *drawing) declare() {
	const norms = "result"
	slots := min(draw.slots, draw.micros)
	for device := range draw.devices {
		for unit := range draw.units {
			name := draw.unit(device, unit)
			fmt.Fprintf(&draw.head, "routine %s %s\n", name, name)
			for _, part := range []string{"weights weight", "master master", "state state", "grads gradient"} {
				part, class, _ := strings.Cut(part, " ")
				draw.buffer(device, name+"."+part, 1024, class)
			}
		}
		draw.buffer(device, "feed", 256, "feed")
		for slot := range slots {
			if device > 0 {
				draw.buffer(device, fmt.Sprintf("act.slot[%d]", slot), 512, "slot")
			}
			if device < draw.devices-1 {
				draw.buffer(device, fmt.Sprintf("grad.slot[%d]", slot), 512, "slot")
			}
		}
		if device == 0 || device == draw.devices-1 {
			draw.buffer(device, "tied.slot", 1024, "slot")
		}
		draw.buffer(device, "norm.slot", 256, "slot")
		draw.buffer(device, "total.slot", 256, "slot")
		draw.buffer(device, "norms", 256, norms)
		draw.buffer(device, "total", 256, norms)
		draw.buffer(device, "losses", 256, norms)
		draw.buffer(device, "out", 512, "stream")
		draw.buffer(device, "dout", 512, "stream")
		draw.buffer(device, "gradient", 512, "stream")
		for ring := range min(draw.devices-device, draw.micros) {
			for unit := range draw.units {
				draw.buffer(device, fmt.Sprintf("%s.input[%d]", draw.unit(device, unit), ring), 512, "saved")
				draw.buffer(device, fmt.Sprintf("%s.saved[%d]", draw.unit(device, unit), ring), 2048, "saved")
			}
		}
		base := draw.offset[device]
		for unit := range draw.units {
			draw.shared(device, draw.unit(device, unit)+".forward", base, 256+256*(unit%2), "scratch")
			draw.shared(device, draw.unit(device, unit)+".backward", base, 768, "scratch")
		}
		fmt.Fprintf(&draw.head, "device %d arena %d budget %d\n", device, base+768, base+4096)
		if device > 0 {
			fmt.Fprintf(&draw.head, "channel act[%d] %d>%d slots %d bytes 512\n", device, device-1, device, slots)
			fmt.Fprintf(&draw.head, "channel grad[%d] %d>%d slots %d bytes 512\n", device, device, device-1, slots)
			fmt.Fprintf(&draw.head, "channel norm[%d] %d>%d slots 1 bytes 256\n", device, device, device-1)
			fmt.Fprintf(&draw.head, "channel total[%d] %d>%d slots 1 bytes 256\n", device, device-1, device)
		}
	}
	if draw.devices > 1 {
		fmt.Fprintf(&draw.head, "channel tied[0]_a 0>%d slots 1 bytes 1024\nchannel tied[0]_b %d>0 slots 1 bytes 1024\n", draw.devices-1, draw.devices-1)
	}
}

func (draw *drawing) forward(device, micro int) {
	ring := micro % min(draw.devices-device, draw.micros)
	slots := min(draw.slots, draw.micros)
	first := "feed"
	if device > 0 {
		sequence := draw.next(fmt.Sprintf("recv act[%d]", device))
		first = fmt.Sprintf("act.slot[%d]", sequence%slots)
		draw.line(device, "compute recv mb%d act[%d]#%d >%s", micro, device, sequence, first)
	}
	for unit := range draw.units {
		name := draw.unit(device, unit)
		source := fmt.Sprintf("%s.input[%d]", name, ring)
		if unit == 0 {
			source = first + " >" + source
		}
		var target, wait string
		switch {
		case unit < draw.units-1:
			target = fmt.Sprintf(">%s.input[%d]", draw.unit(device, unit+1), ring)
		case device < draw.devices-1:
			target, wait = ">out", draw.after(device, device+1, "out")
		case micro == 0:
			target = ">losses"
		default:
			target = "+losses"
		}
		draw.line(device, "compute forward %s mb%d %s.weights %s >%s.saved[%d] >%s.forward %s%s", name, micro, name, source, name, ring, name, target, wait)
		if unit == 0 && device > 0 {
			draw.line(device, "compute free act[%d]#%d", device, draw.next(fmt.Sprintf("free act[%d]", device)))
		}
	}
	if device < draw.devices-1 {
		draw.send(device, device+1, fmt.Sprintf("act[%d]", device+1), fmt.Sprintf(" mb%d", micro), "out")
	}
}

func (draw *drawing) backward(device, micro int) {
	ring := micro % min(draw.devices-device, draw.micros)
	slots := min(draw.slots, draw.micros)
	slot := ""
	if device < draw.devices-1 {
		sequence := draw.next(fmt.Sprintf("recv grad[%d]", device+1))
		slot = fmt.Sprintf(" grad.slot[%d]", sequence%slots)
		draw.line(device, "compute recv mb%d grad[%d]#%d >%s", micro, device+1, sequence, slot[1:])
	}
	for unit := draw.units - 1; unit >= 0; unit-- {
		name, accumulate := draw.unit(device, unit), "+"
		if micro == 0 {
			accumulate = ">"
		}
		source, target, wait := " gradient", " +gradient", ""
		if unit == draw.units-1 {
			source, target = slot, " >gradient"
		}
		if unit == 0 {
			target = ""
			if device > 0 {
				target, wait = " >dout", draw.after(device, device-1, "dout")
			}
		} else if unit < draw.units-1 {
			source = ""
		}
		draw.line(device, "compute backward %s mb%d %s.weights %s.input[%d] %s.saved[%d]%s %s%s.grads >%s.backward%s%s", name, micro, name, name, ring, name, ring,
			source, accumulate, name, name, target, wait)
		if unit == draw.units-1 && slot != "" {
			draw.line(device, "compute free grad[%d]#%d", device+1, draw.next(fmt.Sprintf("free grad[%d]", device+1)))
		}
	}
	if device > 0 {
		draw.send(device, device-1, fmt.Sprintf("grad[%d]", device), fmt.Sprintf(" mb%d", micro), "dout")
	}
}

// update is norms down the devices, their sum up, and the steps.
func (draw *drawing) update(device int) {
	tied, foreign := draw.devices > 1 && (device == 0 || device == draw.devices-1), ""
	own, other, to, owner := "a", "b", draw.devices-1, draw.unit(device, 0)
	if device > 0 {
		own, other, to, owner = "b", "a", 0, draw.unit(device, draw.units-1)
	}
	if tied {
		draw.send(device, to, "tied[0]_"+own, "", owner+".grads")
		draw.line(device, "compute recv tied[0]_%s#0 >tied.slot", other)
		foreign = " tied.slot"
	}
	all := ""
	for unit := range draw.units {
		all += " " + draw.unit(device, unit) + ".grads"
	}
	if device < draw.devices-1 {
		draw.line(device, "compute recv norm[%d]#0 >norm.slot", device+1)
		draw.line(device, "compute step%s%s norm.slot >norms", all, foreign)
		draw.line(device, "compute free norm[%d]#0", device+1)
	} else {
		draw.line(device, "compute step%s%s >norms", all, foreign)
	}
	total := "total"
	if device > 0 {
		draw.send(device, device-1, fmt.Sprintf("norm[%d]", device), "", "norms")
		draw.line(device, "compute recv total[%d]#0 >total.slot", device)
		total = "total.slot"
	} else {
		draw.line(device, "compute step norms >total")
	}
	if device < draw.devices-1 {
		draw.send(device, device+1, fmt.Sprintf("total[%d]", device+1), "", total)
	}
	for unit := range draw.units {
		name, sums := draw.unit(device, unit), ""
		if tied && name == owner {
			sums = foreign
		}
		draw.line(device, "compute step %s.grads%s %s +%s.weights +%s.master +%s.state", name, sums, total, name, name, name)
	}
	if tied {
		draw.line(device, "compute free tied[0]_%s#0", other)
	}
	if device > 0 {
		wait := ""
		if device < draw.devices-1 {
			wait = draw.after(device, device+1, "total.slot")
		}
		draw.line(device, "compute free total[%d]#0%s", device, wait)
	}
	if device == draw.devices-1 {
		draw.line(device, "compute fence losses")
	}
}

func (draw *drawing) String() string {
	draw.count, draw.offset, draw.compute = make([]int, draw.devices), make([]int, draw.devices), make([]int, draw.devices)
	draw.last, draw.sequence = make([]map[string]int, draw.devices), make(map[string]int)
	draw.declare()
	for device := range draw.devices {
		draw.last[device] = make(map[string]int)
		for unit := range draw.units {
			draw.line(device, "compute load >%[1]s.weights >%[1]s.master", draw.unit(device, unit))
			draw.line(device, "compute zero >%s.state", draw.unit(device, unit))
		}
		draw.line(device, "compute load >feed")
		ahead := min(draw.devices-device-1, draw.micros)
		for micro := range ahead {
			draw.forward(device, micro)
		}
		for micro := range draw.micros {
			if micro+ahead < draw.micros {
				draw.forward(device, micro+ahead)
			}
			draw.backward(device, micro)
		}
		draw.update(device)
		for unit := range draw.units {
			draw.line(device, "compute unload %[1]s.weights %[1]s.master %[1]s.state", draw.unit(device, unit))
		}
		draw.line(device, "compute unload feed")
	}
	return draw.head.String() + draw.lines.String()
}

func parsed(tb testing.TB, text string) *Program {
	tb.Helper()
	program, err := Parse("drawn", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return program
}

// TestCheckDrawn: programs as an engine would write them are sound, whatever
// their sizes.
func TestCheckDrawn(t *testing.T) {
	for devices := 1; devices <= 5; devices++ {
		for micros := 1; micros <= 7; micros++ {
			for units := 1; units <= 3; units++ {
				for slots := 1; slots <= 3; slots++ {
					draw := drawing{pipeline: pipeline{devices, micros, units, slots}}
					if err := parsed(t, draw.String()).Check().Err(); err != nil {
						t.Fatalf("%+v: %v", draw.pipeline, err)
					}
				}
			}
		}
	}
}
