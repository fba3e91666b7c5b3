package program

import (
	"flag"
	"fmt"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var samples = flag.Int("draws", 1, "times as many random programs")

// randomText generates a small program: devices, streams, buffers that overlap,
// messages with and without slots. Its lines are in an order that could be run;
// each line waits for a few of those before it, now and then for any.
func randomText(random *rand.Rand) string {
	var head strings.Builder
	devices := 1 + random.IntN(2)
	var buffers [][]string
	for device := range devices {
		fmt.Fprintf(&head, "device %d arena 12 budget 12\n", device)
		buffers = append(buffers, nil)
		for number := range 1 + random.IntN(4) {
			name := fmt.Sprintf("b%d", number)
			class := []string{"stream", "other"}[random.IntN(2)]
			fmt.Fprintf(&head, "buffer %d %s %d +%d %s\n", device, name, random.IntN(9), 1+random.IntN(3), class)
			buffers[device] = append(buffers[device], name)
		}
	}
	text := &randomLines{Rand: random, streams: 1 + random.IntN(3), waits: random.Float64(), anyLine: 0.02 * random.Float64(), lines: make([][]string, devices)}
	var todo []func()
	for channel := range random.IntN(3) {
		slots, messages, from, to := random.IntN(3), 1+random.IntN(3), random.IntN(devices), random.IntN(devices)
		fmt.Fprintf(&head, "channel c%d %d>%d slots %d bytes 2\n", channel, from, to, slots)
		for slot := range max(1, slots) {
			fmt.Fprintf(&head, "buffer %d c%d.slot[%d] %d +2 slot\n", to, channel, slot, random.IntN(11))
			buffers[to] = append(buffers[to], fmt.Sprintf("c%d.slot[%d]", channel, slot))
		}
		stream := random.IntN(text.streams)
		sent, received, freed := 0, 0, 0
		for range 3 * messages {
			todo = append(todo, func() {
				switch slot := 0; {
				case freed < received && random.IntN(2) == 0:
					text.add(to, text.IntN(text.streams), fmt.Sprintf("free c%d#%d", channel, freed))
					freed++
				case received < sent:
					if slots > 0 {
						slot = received % slots
					}
					text.add(to, stream, fmt.Sprintf("recv c%d#%d >c%d.slot[%d]", channel, received, channel, slot))
					received++
				case sent < messages && (slots == 0 || sent < freed+slots):
					text.add(from, stream, fmt.Sprintf("send c%d#%d", channel, sent))
					sent++
				default:
					text.add(to, text.IntN(text.streams), fmt.Sprintf("free c%d#%d", channel, freed))
					freed++
				}
			})
		}
	}
	made := make([]map[string]bool, devices)
	for i := range made {
		made[i] = make(map[string]bool)
	}
	for range 3 + random.IntN(12) {
		at := random.IntN(len(todo) + 1)
		device := random.IntN(devices)
		todo = slices.Insert(todo, at, func() {
			op, micro, accesses := "fence", "", ""
			if random.IntN(3) == 0 {
				micro = fmt.Sprintf(" mb%d", random.IntN(2))
			}
			for range random.IntN(3) {
				mode := []string{"", "", ">", ">", "+"}[random.IntN(5)]
				name := buffers[device][random.IntN(len(buffers[device]))]
				accesses += " " + mode + name
			}
			if random.IntN(6) == 0 {
				op, accesses = []string{"load", "load", "zero"}[random.IntN(3)], " >"+buffers[device][0]
				made[device][buffers[device][0]] = true
			}
			text.add(device, text.IntN(text.streams), op+micro+accesses)
		})
	}
	text.begin(buffers, random.IntN(8) > 0)
	for _, line := range todo {
		line()
	}
	for device, names := range made {
		for name := range names {
			if random.IntN(8) > 0 {
				text.add(device, 0, "unload "+name)
			}
		}
	}
	return head.String() + text.String()
}

type randomLines struct {
	*rand.Rand
	streams        int
	waits, anyLine float64
	lines          [][]string // by device
	places         []string   // of all lines, in their order: STREAM:D.N
}

// begin writes all buffers, so that few reads find nothing.
func (text *randomLines) begin(buffers [][]string, written bool) {
	for device, names := range buffers {
		for _, name := range names {
			if written && !strings.Contains(name, "slot") {
				text.add(device, 0, "fence >"+name)
			}
		}
	}
}

func (text *randomLines) add(device, stream int, what string) {
	var waits []string
	for i, place := range text.places {
		near := len(text.places)-i < 5
		if text.Float64() < text.waits*0.3 || near && text.Float64() < text.waits {
			waits = append(waits, place)
		}
	}
	name := fmt.Sprintf("s%d", stream)
	line := fmt.Sprintf("%d.%d %s %s", device, len(text.lines[device]), name, what)
	if len(waits) > 0 {
		line += " after " + strings.Join(waits, " ")
	}
	text.places = append(text.places, fmt.Sprintf("%s:%d.%d", name, device, len(text.lines[device])))
	text.lines[device] = append(text.lines[device], line)
}

func (text *randomLines) String() string {
	var all []string
	for _, lines := range text.lines {
		for _, line := range lines {
			if text.Float64() < text.anyLine {
				if !strings.Contains(line, " after ") {
					line += " after"
				}
				line += " " + text.places[text.IntN(len(text.places))]
			}
			all = append(all, line)
		}
	}
	return strings.Join(all, "\n") + "\n"
}

// TestCheckRandom: the checker and the slow one agree on thousands of small
// programs, sound ones among them (-draws for more).
func TestCheckRandom(t *testing.T) {
	sound, deadlocks := 0, 0
	for seed := range 4_000 * uint64(*samples) {
		text := randomText(rand.New(rand.NewPCG(seed, 1)))
		program := parsed(t, text)
		err := program.Check().Err()
		slow := slowly(program)
		if (err == nil) != (len(slow.found) == 0) {
			t.Fatalf("seed %d: %v; slowly: %q\n%s", seed, err, slow.found, text)
		}
		deadlock := len(slow.found) > 0 && slow.found[0] == "deadlock"
		if deadlock != (err != nil && strings.Contains(err.Error(), "V6: ")) {
			t.Fatalf("seed %d: %v; slowly: %q\n%s", seed, err, slow.found, text)
		}
		if err == nil {
			sound++
		}
		if seed%4 == 0 {
			ranAsFound(t, program, slow, rand.New(rand.NewPCG(seed, 3)))
		}
		if deadlock {
			deadlocks++
			if want := fmt.Sprintf("a circle of %d:", slow.smallest()); !strings.Contains(err.Error(), want) {
				t.Fatalf("seed %d: %v; want %s\n%s", seed, err, want, text)
			}
		}
	}
	t.Logf("%d sound, %d deadlocks", sound, deadlocks)
	if sound < 250 || deadlocks < 500 {
		t.Errorf("%d sound, %d deadlocks: too few to compare", sound, deadlocks)
	}
}

// ranAsFound runs a program and compares it with the findings. It halts if and only if it
// deadlocks. A valid program has the same results in every interleaving. Either instruction of a
// race can come first.
func ranAsFound(t *testing.T, program *Program, slow *slowCheck, random *rand.Rand) {
	t.Helper()
	run := func(blocked, until int) (map[string]uint64, bool) {
		made := newRunner(program, random, hashSeed)
		made.block, made.fences = 1, true
		made.memory = nil
		for _, device := range program.Devices {
			made.memory = append(made.memory, make([]uint64, device.Arena))
		}
		done := made.all(int32(blocked), int32(until))
		return made.made, done
	}
	deadlock := len(slow.found) > 0 && slow.found[0] == "deadlock"
	first, done := run(-1, -1)
	if done == deadlock {
		t.Fatalf("runs to its end: %v; %q", done, slow.found)
	}
	if deadlock {
		return
	}
	for range 3 {
		if again, _ := run(-1, -1); len(slow.found) == 0 && !maps.Equal(first, again) {
			t.Fatal("sound, and finds other values in another interleaving")
		}
	}
	for _, race := range slow.races[:min(3, len(slow.races))] {
		for _, pair := range [][2]int{race, {race[1], race[0]}} {
			if _, done := run(pair[0], pair[1]); !done {
				t.Fatalf("%s cannot come behind %s, and nothing orders them", program.Line(int32(pair[0])), program.Line(int32(pair[1])))
			}
		}
	}
}

var hashSeed = maphash.MakeSeed()
