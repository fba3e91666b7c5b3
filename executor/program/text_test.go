package program

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/devmap-dev/devmap/fixtures"
)

// canonical is a program with a line of every kind, as Text prints it.
const canonical = `program devmap.program/v1
model "a \"model\""
plan sha256:0123
time picoseconds
predicted devmap step 120 peaks 4096 2048
predicted accelerate step 130 peaks 4000 2000
device 0 arena 4096 budget 8192
device 3 arena 2048 budget 8192
channel act[1] 0>3 slots 2 bytes 256
link act[1] 10 3
channel total[0] 3>0 slots 1 bytes 256
routine embed model.embed_tokens
routine h.0 model.rotary_emb "a unit, with spaces"
  gemm m=4 n=8 saved x[4,8] bf16
  # add
buffer 0 embed.weights 0 +256 weight
buffer 0 out[0] 256 +256 stream
buffer 3 act[1].slot[0] 0 +256 slot
buffer 3 act[1].slot[1] 256 +256 slot
buffer 3 h.0.saved[0] 512 +256 saved
ticks 0 forward embed 5
ticks 3 forward h.0 7
ticks 3 step h.0.saved[0] 4
ticks 3.3 9
ticks 3.5 2
0.0 compute load >embed.weights
0.1 compute forward embed mb0 embed.weights >out[0]
0.2 to3 send mb0 act[1]#0 out[0] after compute:0.1
0.3 compute forward embed mb1 embed.weights >out[0] after to3:0.2
0.4 to3 send mb1 act[1]#1 out[0] after compute:0.3
3.0 compute recv mb0 act[1]#0 >act[1].slot[0]
3.1 compute forward h.0 mb0 act[1].slot[0] >h.0.saved[0]
3.2 compute free act[1]#0
3.3 compute forward h.0 mb1 act[1].slot[1] +h.0.saved[0]
3.4 compute step act[1].slot[1] +h.0.saved[0] >act[1].slot[0]
3.5 compute fence h.0.saved[0] after compute:3.3 compute:0.0
`

func mustParse(t *testing.T, text string) *Program {
	t.Helper()
	program := fixtures.Must(Parse("p", []byte(text)))(t)
	return program
}

func printed(t *testing.T, program *Program) string {
	t.Helper()
	var out bytes.Buffer
	if err := program.Text(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func inJSON(t *testing.T, program *Program) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := program.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// same compares programs, what only readers see included.
var same = []cmp.Option{cmp.AllowUnexported(Program{}), cmpopts.EquateEmpty()}

// TestCanonical: text that Text printed is printed again as it was, through
// JSON too.
func TestCanonical(t *testing.T) {
	program := mustParse(t, canonical)
	if len(program.dangling) > 0 {
		t.Fatal(program.dangling)
	}
	if diff := cmp.Diff(canonical, printed(t, program)); diff != "" {
		t.Errorf("text (-was +is):\n%s", diff)
	}
	again := fixtures.Must(Parse("p.json", inJSON(t, program)))(t)
	if diff := cmp.Diff(program, again, same...); diff != "" {
		t.Errorf("through JSON (-was +is):\n%s", diff)
	}
	if got := program.Line(5); got != "3.0 compute recv mb0 act[1]#0 >act[1].slot[0]" || program.Place(5) != "3.0" {
		t.Errorf("Line %q, Place %q", got, program.Place(5))
	}
}

// TestDurations: a line for all that a device runs of a routine, one for what
// differs, none for sends as long as their channel says.
func TestDurations(t *testing.T) {
	program := mustParse(t, canonical)
	var got []int64
	for i := range program.Instrs {
		got = append(got, program.Instrs[i].Ticks)
	}
	if want := []int64{0, 5, 10, 5, 10, 0, 7, 0, 9, 4, 2}; !cmp.Equal(got, want) {
		t.Errorf("ticks %v, want %v", got, want)
	}
	if channel := program.Channels[0]; channel.Ticks != 10 || channel.Latency != 3 {
		t.Errorf("%+v", channel)
	}
	bare := mustParse(t, "device 0 arena 0 budget 0\n0.0 compute fence\n")
	if bare.Timed || !program.Timed {
		t.Error("Timed is of programs that say how long they take")
	}
}

// TestOthersText: what the form allows and Text does not print so: devices'
// lines mixed, declarations behind their use, spaces, comments, empty lines,
// line ends of Windows.
func TestOthersText(t *testing.T) {
	got := mustParse(t, strings.Join([]string{
		"# a program by hand", "device 1 arena 512 budget 512", "",
		"1.0  x   recv act#0 >slot", "0.0 compute send act#0 a\tafter  y:0.1", "0.1 y zero >a", "1.1 x free act#0",
		"channel act 0>1 slots 0 bytes 256", "device 0 arena 256 budget 256", "routine r u0,u1 u2", "\tkernel 1",
		"buffer 0 a 0 +256 other", "buffer 1 slot 0 +256 slot",
	}, "\r\n"))
	if len(got.dangling) > 0 {
		t.Fatal(got.dangling)
	}
	want := `program devmap.program/v1
device 1 arena 512 budget 512
device 0 arena 256 budget 256
channel act 0>1 slots 0 bytes 256
routine r u0 u1 u2
  kernel 1
buffer 0 a 0 +256 other
buffer 1 slot 0 +256 slot
1.0 x recv act#0 >slot
1.1 x free act#0
0.0 compute send act#0 a after y:0.1
0.1 y zero >a
`
	if diff := cmp.Diff(want, printed(t, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBadText: what is not of the form is an error with its line, the word and
// what belongs there.
func TestBadText(t *testing.T) {
	const head = "device 0 arena 0 budget 0\n"
	for text, want := range map[string]string{
		"":                                       `p: no devices`,
		"\x7fELF\x01":                            `p: line 1: "\x7fELF\x01": want an instruction (DEVICE.NUMBER …), or one of buffer, channel, device, link, model, plan, predicted, program, routine, ticks, time`,
		"program devmap.program/v2":              `p: line 1: "devmap.program/v2": want devmap.program/v1`,
		head + "program devmap.program/v1 x":     `p: line 2: "x": want the end of the line`,
		"model a\nmodel b":                       `p: line 1: "a": want a name in quotes`,
		`model "a` + "\"\n" + `model "b"`:        `p: line 2: "model" stands twice`,
		"device 0 arena":                         `p: line 1: the line ends: want a decimal number`,
		"device -1 arena 0 budget 0":             `p: line 1: "-1": want a decimal number`,
		"device 2147483647 arena 0 budget 0":     `p: line 1: "2147483647": want a number below 2147483647`,
		"device 0 arena 4611686018427387904 b":   `p: line 1: "4611686018427387904": want a number below 4611686018427387904`,
		"device 0 arena 99999999999999999999":    `p: line 1: "99999999999999999999": want a number below`,
		"device 0 arena 0x10 budget 0":           `p: line 1: "0x10": want a decimal number`,
		"device 0 budget 0 arena 0":              `p: line 1: "budget": want arena`,
		head + "buffer 0 a/b 0 +1 x":             `p: line 2: "a/b": want a buffer's name`,
		head + "buffer 0 mb3 0 +1 x":             `p: line 2: "mb3": want a buffer's name`,
		head + "buffer 0 a 0 256 x":              `p: line 2: "256": want +BYTES`,
		head + "buffer 0 a 0 +256":               `p: line 2: the line ends: want a class`,
		head + "channel a.b 0>1 slots 1":         `p: line 2: "a.b": want a channel's name`,
		head + "channel a 0-1 slots 1":           `p: line 2: "0-1": want DEVICE>DEVICE`,
		head + "channel a 0>1 slots 1048577":     `p: line 2: slots: "1048577": want a number below 1048577`,
		head + "channel a 0>1 bytes 1":           `p: line 2: "bytes": want slots`,
		head + "routine r":                       `p: line 2: the line ends: want the routine's units`,
		head + `routine r "u`:                    `p: line 2: "\"u": want a unit's name in quotes`,
		head + "  gemm":                          `p: line 2: "gemm": an indented line is a kernel, below its routine`,
		head + "link a":                          `p: line 2: the line ends: want a decimal number`,
		head + "ticks 0 send 1":                  `p: line 2: the line ends: want a decimal number`,
		head + "ticks 0 step > 1":                `p: line 2: ">": want a routine, or the buffer that is changed first`,
		head + "time seconds":                    `p: line 2: "seconds": want picoseconds`,
		head + "0 compute fence":                 `p: line 2: "0": want DEVICE.NUMBER`,
		head + "0.0.0 compute fence":             `p: line 2: "0.0.0": want DEVICE.NUMBER`,
		head + "0.0 com:pute fence":              `p: line 2: "com:pute": want a stream`,
		head + "0.0 compute":                     `p: line 2: the line ends: want an operation`,
		head + "0.0 compute forwrd r":            `p: line 2: "forwrd": want an operation: load, zero, recv, send, free, forward, backward, backward-input, backward-weight, recompute, decode, step, fence, unload`,
		head + "0.0 compute fence >":             `p: line 2: ">": want a buffer (NAME, >NAME or +NAME)`,
		head + "0.0 compute fence a mb0":         `p: line 2: "mb0": want a buffer`,
		head + "0.0 compute fence a c#1":         `p: line 2: "c#1": want a buffer`,
		head + "0.0 compute recv c#":             `p: line 2: "c#": want CHANNEL#SEQUENCE`,
		head + "0.0 compute recv c.d#0":          `p: line 2: "c.d#0": want CHANNEL#SEQUENCE`,
		head + "0.0 compute step mb4294967296":   `p: line 2: "mb4294967296": want a micro-batch`,
		head + "0.0 compute fence after":         `p: line 2: the line ends behind after: want STREAM:DEVICE.NUMBER`,
		head + "0.0 compute fence after 0.0":     `p: line 2: "0.0": want STREAM:DEVICE.NUMBER`,
		head + "0.0 compute fence after c:0":     `p: line 2: "c:0": want STREAM:DEVICE.NUMBER`,
		head + "0.0 compute fence after c:0.0 x": `p: line 2: "x": want STREAM:DEVICE.NUMBER`,
		"predicted devmap step 1 peaks x":        `p: line 1: "x": want a decimal number`,
	} {
		_, err := Parse("p", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error %v, want %s…", text, err, want)
		}
	}
}

// TestDangling: a name or number that refers to nothing is a fault, and all of
// them are found.
func TestDangling(t *testing.T) {
	program := mustParse(t, `device 0 arena 0 budget 0
device 0 arena 1 budget 1
buffer 0 a 0 +1 state
buffer 0 a 1 +1 state
channel c 0>7 slots 1 bytes 1
channel c 0>0 slots 1 bytes 1
routine r u
routine r v
  a kernel
link d 1 1
link c 1 1
link c 2 2
ticks 0 forward q 1
ticks 0 forward r 1
ticks 0 forward r 2
ticks 0.9 1
ticks 0 step b 1
ticks 0 step a 1
0.0 compute forward s mb0 a
0.1 compute send d#0 b c after compute:0.9 compute:5.0 copy:0.0
0.3 compute recv c#0 a after compute:0.2 compute:0.3
0.3 compute free c#0
`)
	var got []string
	for _, fault := range program.dangling {
		got = append(got, fmt.Sprintf("%d %d %s", fault.Device, fault.Instr, fault.Message))
		if fault.Rule != "names" {
			t.Errorf("%+v", fault)
		}
	}
	want := []string{
		"0 -1 line 2: device 0 is declared twice",
		`0 -1 line 4: buffer "a" of device 0 is declared twice`,
		`-1 -1 line 6: channel "c" is declared twice`,
		`-1 -1 line 8: routine "r" is declared twice`,
		`0 0 line 19: device 0, 0.0: runs routine "s", which is not declared`,
		`0 1 line 20: device 0, 0.1: names channel "d", which is not declared`,
		`0 1 line 20: device 0, 0.1: names "b", which the device does not declare`,
		`0 1 line 20: device 0, 0.1: names "c", a channel: want CHANNEL#SEQUENCE, or a buffer`,
		"1 -1 line 5: device 7 is not declared",
		"0 2 line 21: device 0, 0.3: stands where 0.2 belongs: instructions count from 0, without gaps",
		"0 3 line 22: device 0, 0.3: stands where 0.4 belongs: instructions count from 0, without gaps",
		"0 1 line 20: device 0, 0.1: waits for compute:0.9: there is no such instruction",
		"0 1 line 20: device 0, 0.1: waits for compute:5.0: there is no such device",
		"0 1 line 20: device 0, 0.1: waits for copy:0.0: the device has no such stream",
		"0 2 line 21: device 0, 0.3: waits for compute:0.2: there is no such instruction",
		`-1 -1 line 10: link of channel "d": it is not declared`,
		`-1 -1 line 12: link of channel "c": given twice`,
		`-1 -1 line 13: ticks of forward "q" on device 0: one of them is not declared`,
		`-1 -1 line 15: ticks of forward "r" on device 0: given twice`,
		`-1 -1 line 17: ticks of step "b" on device 0: one of them is not declared`,
		"-1 -1 line 16: ticks of 0.9: there is no such instruction",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if program.Instrs[0].Routine != unknown || program.Instrs[1].Channel != unknown || len(program.Waits) != 1 {
		t.Errorf("%+v %+v", program.Instrs, program.Waits)
	}
	if err := program.Text(&bytes.Buffer{}); err == nil {
		t.Error("a program with names that stand for nothing has no text")
	}
}

// TestManyFaults: a file of faults alone keeps a thousand, and the number of
// the others.
func TestManyFaults(t *testing.T) {
	program := mustParse(t, "device 0 arena 0 budget 0\n"+strings.Repeat("0.0 compute free c#0\n", 5000))
	if got := program.dangling; len(got) != maxFaults+1 || got[maxFaults].Message != "… and 8999 more" {
		t.Errorf("%d faults, the last %+v", len(got), got[len(got)-1])
	}
}

// randomProgram is a program at random: every field takes part.
func randomProgram(rng *rand.Rand) *Program {
	program := &Program{Timed: rng.IntN(3) > 0}
	if rng.IntN(2) == 0 {
		program.Model, program.Plan = "modèle \n\"x\"", "sha256:ab"
		program.Predictions = []Prediction{{"devmap", rng.Int64N(100), []int64{rng.Int64N(100)}}}
	}
	for id := range 1 + rng.IntN(4) {
		program.Devices = append(program.Devices, Device{ID: int32(3 * id), Arena: rng.Int64N(maxNumber), Budget: rng.Int64N(maxNumber)})
		for buffer := range 1 + rng.IntN(3) {
			program.Buffers = append(program.Buffers, Buffer{int32(id), fmt.Sprintf("b[%d]", buffer), rng.Int64N(maxNumber), rng.Int64N(1000), []Class{Saved, Weight, "other"}[rng.IntN(3)]})
		}
	}
	rng.Shuffle(len(program.Buffers), func(i, j int) {
		program.Buffers[i], program.Buffers[j] = program.Buffers[j], program.Buffers[i]
	})
	for channel := range 1 + rng.IntN(3) {
		made := Channel{Name: fmt.Sprintf("c[%d]", channel), From: randomIndex(rng, len(program.Devices)), To: randomIndex(rng, len(program.Devices)), Slots: rng.Int32N(4), Bytes: rng.Int64N(1000)}
		if program.Timed {
			made.Ticks, made.Latency = rng.Int64N(3), rng.Int64N(3)
		}
		program.Channels = append(program.Channels, made)
	}
	for routine := range 1 + rng.IntN(3) {
		program.Routines = append(program.Routines, Routine{fmt.Sprintf("r.%d", routine), []string{"u", "ü,\"", "after"}[:1+rng.IntN(3)], []string{"k 1", "#"}[:rng.IntN(3)]})
	}
	for device := range program.Devices {
		program.Devices[device].First = int32(len(program.Instrs))
		for range rng.IntN(6) {
			addRandomInstr(rng, program, int32(device))
		}
		program.Devices[device].End = int32(len(program.Instrs))
	}
	addRandomWaits(rng, program)
	return program
}

func randomIndex(rng *rand.Rand, count int) int32 { return rng.Int32N(int32(count)) }

func addRandomInstr(rng *rand.Rand, program *Program, device int32) {
	made := Instr{Device: device, Op: Op(rng.IntN(len(opNames))), Routine: None, MicroBatch: None, Channel: None, FirstAccess: int32(len(program.Accesses))}
	streams := &program.Devices[device].Streams
	if made.Stream = randomIndex(rng, len(*streams)+1); int(made.Stream) == len(*streams) {
		*streams = append(*streams, fmt.Sprintf("s%d", made.Stream))
	}
	if made.Op.Runs() {
		made.Routine = randomIndex(rng, len(program.Routines))
	}
	if rng.IntN(2) == 0 {
		made.MicroBatch = rng.Int32N(maxIndex)
	}
	if rng.IntN(2) == 0 {
		made.Channel, made.Sequence = randomIndex(rng, len(program.Channels)), rng.Int32N(maxIndex)
	}
	if program.Timed {
		made.Ticks = rng.Int64N(3)
	}
	for buffer := range program.Buffers {
		if program.Buffers[buffer].Device == device && rng.IntN(2) == 0 {
			program.Accesses = append(program.Accesses, Access{int32(buffer), Mode(rng.IntN(3))})
		}
	}
	made.EndAccess = int32(len(program.Accesses))
	program.Instrs = append(program.Instrs, made)
}

// addRandomWaits lets instructions wait for any, on any stream of its device.
func addRandomWaits(rng *rand.Rand, program *Program) {
	for i := range program.Instrs {
		program.Instrs[i].FirstWait = int32(len(program.Waits))
		for range rng.IntN(3) {
			other := randomIndex(rng, len(program.Instrs))
			streams := program.Devices[program.Instrs[other].Device].Streams
			program.Waits = append(program.Waits, Wait{other, randomIndex(rng, len(streams))})
		}
		program.Instrs[i].EndWait = int32(len(program.Waits))
	}
}

// TestRoundTrip: printed and read, a program is the same, and so is its text.
func TestRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 3))
	for range 500 {
		program := randomProgram(rng)
		text := printed(t, program)
		for _, data := range [][]byte{[]byte(text), inJSON(t, program)} {
			again, err := Parse("p", data)
			if err != nil {
				t.Fatalf("%v\n%s", err, data)
			}
			if diff := cmp.Diff(program, again, same...); diff != "" {
				t.Fatalf("(-was +is):\n%s\n%s", diff, data)
			}
			if printed(t, again) != text {
				t.Fatalf("printed again:\n%s\nwas\n%s", printed(t, again), text)
			}
		}
	}
}

// FuzzParse: any bytes are a program or an error in one line that begins with
// the file; a program that has a text is read back from it, and from its JSON.
func FuzzParse(f *testing.F) {
	program := fixtures.Must(Parse("p", []byte(canonical)))(f)
	var asJSON bytes.Buffer
	if err := program.WriteJSON(&asJSON); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(canonical))
	f.Add(asJSON.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		program, err := Parse("p", data)
		if err != nil {
			if text := err.Error(); !strings.HasPrefix(text, "p: ") || strings.ContainsFunc(text, unicode.IsControl) {
				t.Fatalf("error %q", text)
			}
			return
		}
		var text bytes.Buffer
		if program.Text(&text) != nil {
			return
		}
		for _, data := range [][]byte{text.Bytes(), inJSON(t, program)} {
			again, err := Parse("p", data)
			if err != nil {
				t.Fatalf("%v\n%s", err, data)
			}
			if diff := cmp.Diff(program, again, same...); diff != "" {
				t.Fatalf("(-was +is):\n%s\n%s", diff, data)
			}
		}
	})
}
