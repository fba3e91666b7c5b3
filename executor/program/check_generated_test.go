package program

import (
	"fmt"
	"strings"
	"testing"
)

// pipeline describes a training program as an engine would run it, written here
// by hand: 1F1B, a ring of saved activations, slots, a tied embedding, norms.
type pipeline struct{ devices, micros, units, slots int }

// programText is the text of a program as it grows.
type programText struct {
	pipeline
	head, lines strings.Builder
	count       []int            // of lines, by device
	offset      []int            // of the next buffer, by device
	compute     []int            // the last line of stream compute, by device
	last        []map[string]int // by device: the line that a later one waits for
	sequence    map[string]int   // of channels' ends
}

func (text *programText) buffer(device int, name string, bytes int, class string) {
	fmt.Fprintf(&text.head, "buffer %d %s %d +%d %s\n", device, name, text.offset[device], bytes, class)
	text.offset[device] += bytes
}

// shared is a buffer at the place of another one.
func (text *programText) shared(device int, name string, offset, bytes int, class string) {
	fmt.Fprintf(&text.head, "buffer %d %s %d +%d %s\n", device, name, offset, bytes, class)
}

func (text *programText) line(device int, format string, args ...any) int {
	number := text.count[device]
	fmt.Fprintf(&text.lines, "%d.%d %s\n", device, number, fmt.Sprintf(format, args...))
	text.count[device]++
	if strings.HasPrefix(format, "compute ") {
		text.compute[device] = number
	}
	return number
}

// next is the sequence of a channel's next send, recv or free.
func (text *programText) next(end string) int {
	number := text.sequence[end]
	text.sequence[end]++
	return number
}

func (text *programText) unit(device, unit int) string { return fmt.Sprintf("u%d.%d", device, unit) }

// send puts a send behind the line that made the message.
func (text *programText) send(device, to int, channel, micro, buffer string) {
	number := text.line(device, "to%d send%s %s#%d %s after compute:%d.%d", to, micro, channel, text.next("send "+channel), buffer,
		device, text.compute[device])
	text.last[device][buffer] = number
}

// after is the wait of a line that writes what was sent last from a buffer.
func (text *programText) after(device, to int, buffer string) string {
	number, sent := text.last[device][buffer]
	if !sent {
		return ""
	}
	return fmt.Sprintf(" after to%d:%d.%d", to, device, number)
}

func (text *programText) declare() {
	const norms = "result"
	slots := min(text.slots, text.micros)
	for device := range text.devices {
		for unit := range text.units {
			name := text.unit(device, unit)
			fmt.Fprintf(&text.head, "routine %s %s\n", name, name)
			for _, part := range []string{"weights weight", "master master", "state state", "grads gradient"} {
				part, class, _ := strings.Cut(part, " ")
				text.buffer(device, name+"."+part, 1024, class)
			}
		}
		text.buffer(device, "feed", 256, "feed")
		for slot := range slots {
			if device > 0 {
				text.buffer(device, fmt.Sprintf("act.slot[%d]", slot), 512, "slot")
			}
			if device < text.devices-1 {
				text.buffer(device, fmt.Sprintf("grad.slot[%d]", slot), 512, "slot")
			}
		}
		if device == 0 || device == text.devices-1 {
			text.buffer(device, "tied.slot", 1024, "slot")
		}
		text.buffer(device, "norm.slot", 256, "slot")
		text.buffer(device, "total.slot", 256, "slot")
		text.buffer(device, "norms", 256, norms)
		text.buffer(device, "total", 256, norms)
		text.buffer(device, "losses", 256, norms)
		text.buffer(device, "out", 512, "stream")
		text.buffer(device, "dout", 512, "stream")
		text.buffer(device, "gradient", 512, "stream")
		for ring := range min(text.devices-device, text.micros) {
			for unit := range text.units {
				text.buffer(device, fmt.Sprintf("%s.input[%d]", text.unit(device, unit), ring), 512, "saved")
				text.buffer(device, fmt.Sprintf("%s.saved[%d]", text.unit(device, unit), ring), 2048, "saved")
			}
		}
		base := text.offset[device]
		for unit := range text.units {
			text.shared(device, text.unit(device, unit)+".forward", base, 256+256*(unit%2), "scratch")
			text.shared(device, text.unit(device, unit)+".backward", base, 768, "scratch")
		}
		fmt.Fprintf(&text.head, "device %d arena %d budget %d\n", device, base+768, base+4096)
		if device > 0 {
			fmt.Fprintf(&text.head, "channel act[%d] %d>%d slots %d bytes 512\n", device, device-1, device, slots)
			fmt.Fprintf(&text.head, "channel grad[%d] %d>%d slots %d bytes 512\n", device, device, device-1, slots)
			fmt.Fprintf(&text.head, "channel norm[%d] %d>%d slots 1 bytes 256\n", device, device, device-1)
			fmt.Fprintf(&text.head, "channel total[%d] %d>%d slots 1 bytes 256\n", device, device-1, device)
		}
	}
	if text.devices > 1 {
		fmt.Fprintf(&text.head, "channel tied[0]_a 0>%d slots 1 bytes 1024\nchannel tied[0]_b %d>0 slots 1 bytes 1024\n", text.devices-1, text.devices-1)
	}
}

func (text *programText) forward(device, micro int) {
	ring := micro % min(text.devices-device, text.micros)
	slots := min(text.slots, text.micros)
	first := "feed"
	if device > 0 {
		sequence := text.next(fmt.Sprintf("recv act[%d]", device))
		first = fmt.Sprintf("act.slot[%d]", sequence%slots)
		text.line(device, "compute recv mb%d act[%d]#%d >%s", micro, device, sequence, first)
	}
	for unit := range text.units {
		name := text.unit(device, unit)
		source := fmt.Sprintf("%s.input[%d]", name, ring)
		if unit == 0 {
			source = first + " >" + source
		}
		var target, wait string
		switch {
		case unit < text.units-1:
			target = fmt.Sprintf(">%s.input[%d]", text.unit(device, unit+1), ring)
		case device < text.devices-1:
			target, wait = ">out", text.after(device, device+1, "out")
		case micro == 0:
			target = ">losses"
		default:
			target = "+losses"
		}
		text.line(device, "compute forward %s mb%d %s.weights %s >%s.saved[%d] >%s.forward %s%s", name, micro, name, source, name, ring, name, target, wait)
		if unit == 0 && device > 0 {
			text.line(device, "compute free act[%d]#%d", device, text.next(fmt.Sprintf("free act[%d]", device)))
		}
	}
	if device < text.devices-1 {
		text.send(device, device+1, fmt.Sprintf("act[%d]", device+1), fmt.Sprintf(" mb%d", micro), "out")
	}
}

func (text *programText) backward(device, micro int) {
	ring := micro % min(text.devices-device, text.micros)
	slots := min(text.slots, text.micros)
	slot := ""
	if device < text.devices-1 {
		sequence := text.next(fmt.Sprintf("recv grad[%d]", device+1))
		slot = fmt.Sprintf(" grad.slot[%d]", sequence%slots)
		text.line(device, "compute recv mb%d grad[%d]#%d >%s", micro, device+1, sequence, slot[1:])
	}
	for unit := text.units - 1; unit >= 0; unit-- {
		name, accumulate := text.unit(device, unit), "+"
		if micro == 0 {
			accumulate = ">"
		}
		source, target, wait := " gradient", " +gradient", ""
		if unit == text.units-1 {
			source, target = slot, " >gradient"
		}
		if unit == 0 {
			target = ""
			if device > 0 {
				target, wait = " >dout", text.after(device, device-1, "dout")
			}
		} else if unit < text.units-1 {
			source = ""
		}
		text.line(device, "compute backward %s mb%d %s.weights %s.input[%d] %s.saved[%d]%s %s%s.grads >%s.backward%s%s", name, micro, name, name, ring, name, ring,
			source, accumulate, name, name, target, wait)
		if unit == text.units-1 && slot != "" {
			text.line(device, "compute free grad[%d]#%d", device+1, text.next(fmt.Sprintf("free grad[%d]", device+1)))
		}
	}
	if device > 0 {
		text.send(device, device-1, fmt.Sprintf("grad[%d]", device), fmt.Sprintf(" mb%d", micro), "dout")
	}
}

// update is norms down the devices, their sum up, and the steps.
func (text *programText) update(device int) {
	tied, foreign := text.devices > 1 && (device == 0 || device == text.devices-1), ""
	own, other, to, owner := "a", "b", text.devices-1, text.unit(device, 0)
	if device > 0 {
		own, other, to, owner = "b", "a", 0, text.unit(device, text.units-1)
	}
	if tied {
		text.send(device, to, "tied[0]_"+own, "", owner+".grads")
		text.line(device, "compute recv tied[0]_%s#0 >tied.slot", other)
		foreign = " tied.slot"
	}
	all := ""
	for unit := range text.units {
		all += " " + text.unit(device, unit) + ".grads"
	}
	if device < text.devices-1 {
		text.line(device, "compute recv norm[%d]#0 >norm.slot", device+1)
		text.line(device, "compute step%s%s norm.slot >norms", all, foreign)
		text.line(device, "compute free norm[%d]#0", device+1)
	} else {
		text.line(device, "compute step%s%s >norms", all, foreign)
	}
	total := "total"
	if device > 0 {
		text.send(device, device-1, fmt.Sprintf("norm[%d]", device), "", "norms")
		text.line(device, "compute recv total[%d]#0 >total.slot", device)
		total = "total.slot"
	} else {
		text.line(device, "compute step norms >total")
	}
	if device < text.devices-1 {
		text.send(device, device+1, fmt.Sprintf("total[%d]", device+1), "", total)
	}
	for unit := range text.units {
		name, sums := text.unit(device, unit), ""
		if tied && name == owner {
			sums = foreign
		}
		text.line(device, "compute step %s.grads%s %s +%s.weights +%s.master +%s.state", name, sums, total, name, name, name)
	}
	if tied {
		text.line(device, "compute free tied[0]_%s#0", other)
	}
	if device > 0 {
		wait := ""
		if device < text.devices-1 {
			wait = text.after(device, device+1, "total.slot")
		}
		text.line(device, "compute free total[%d]#0%s", device, wait)
	}
	if device == text.devices-1 {
		text.line(device, "compute fence losses")
	}
}

func (text *programText) String() string {
	text.count, text.offset, text.compute = make([]int, text.devices), make([]int, text.devices), make([]int, text.devices)
	text.last, text.sequence = make([]map[string]int, text.devices), make(map[string]int)
	text.declare()
	for device := range text.devices {
		text.last[device] = make(map[string]int)
		for unit := range text.units {
			text.line(device, "compute load >%[1]s.weights >%[1]s.master", text.unit(device, unit))
			text.line(device, "compute zero >%s.state", text.unit(device, unit))
		}
		text.line(device, "compute load >feed")
		ahead := min(text.devices-device-1, text.micros)
		for micro := range ahead {
			text.forward(device, micro)
		}
		for micro := range text.micros {
			if micro+ahead < text.micros {
				text.forward(device, micro+ahead)
			}
			text.backward(device, micro)
		}
		text.update(device)
		for unit := range text.units {
			text.line(device, "compute unload %[1]s.weights %[1]s.master %[1]s.state", text.unit(device, unit))
		}
		text.line(device, "compute unload feed")
	}
	return text.head.String() + text.lines.String()
}

func parsed(tb testing.TB, text string) *Program {
	tb.Helper()
	program, err := Parse("drawn", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return program
}

// TestCheckGenerated: programs as an engine would write them are sound, whatever
// their sizes.
func TestCheckGenerated(t *testing.T) {
	for devices := 1; devices <= 5; devices++ {
		for micros := 1; micros <= 7; micros++ {
			for units := 1; units <= 3; units++ {
				for slots := 1; slots <= 3; slots++ {
					text := programText{pipeline: pipeline{devices, micros, units, slots}}
					if err := parsed(t, text.String()).Check().Err(); err != nil {
						t.Fatalf("%+v: %v", text.pipeline, err)
					}
				}
			}
		}
	}
}
