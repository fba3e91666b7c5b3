package program

import (
	"fmt"
	"strings"
	"testing"
)

// TestCheckEmpty: what says nothing breaks nothing.
func TestCheckEmpty(t *testing.T) {
	if err := new(Program).Check().Err(); err != nil {
		t.Error(err)
	}
}

// TestCheckForeignBuffer: V5 of programs that no text can say, since names are a
// device's own.
func TestCheckForeignBuffer(t *testing.T) {
	program := parsed(t, "device 0 arena 8 budget 8\ndevice 1 arena 8 budget 8\nbuffer 0 b 0 +8 stream\n1.0 compute fence\n0.0 compute fence >b\n")
	program.Accesses = append(program.Accesses, Access{Buffer: 0, Mode: Read})
	program.Instrs[1].FirstAccess, program.Instrs[1].EndAccess = 1, 2
	err := program.Check().Err()
	want := `V5: device 1, 1.0 fence: buffer "b" lies on device 0; an instruction touches buffers of its own device, others send theirs`
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// TestCheckManyFaults: a program of a hundred thousand faults of three rules is
// reported in a few lines, with the number of the others.
func TestCheckManyFaults(t *testing.T) {
	var text strings.Builder
	text.WriteString("device 0 arena 8 budget 8\nbuffer 0 b 0 +8 stream\nbuffer 0 w 0 +8 weight\n")
	for number := range 50_000 {
		fmt.Fprintf(&text, "0.%d compute forward mb0 b\n", number)
	}
	err := parsed(t, text.String()).Check().Err()
	if err == nil {
		t.Fatal("is found sound")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 2*(faultsPerRule+1)+1 {
		t.Errorf("%d lines", len(lines))
	}
	for _, want := range []string{"V1: and 49990 more of this rule", "V7: and 49990 more of this rule"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in\n%v", want, err)
		}
	}
}

// TestCheckLive: live bytes by the order of lines. A buffer lives from the line
// that writes it to the last that touches it before it is written again; classes
// that are there throughout live always.
func TestCheckLive(t *testing.T) {
	program := parsed(t, `device 0 arena 1000 budget 1000
buffer 0 w 0 +100 weight
buffer 0 a 100 +10 stream
buffer 0 b 110 +20 scratch
0.0 compute load >w
0.1 compute fence >a
0.2 compute fence a >b
0.3 compute fence b
0.4 compute fence >a
0.5 compute fence a >a
0.6 compute fence
0.7 compute fence a
0.8 compute unload w
`)
	report := program.Check()
	if err := report.Err(); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(report.Live), "[100 110 130 120 110 110 110 110 100]"; got != want {
		t.Errorf("live %s, want %s", got, want)
	}
	if got, want := report.Devices[0], (Usage{Live: 130, At: 2, Idle: 870}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestCheckManyStreams: clocks of more streams than memory is given to are not
// made, and that is said.
func TestCheckManyStreams(t *testing.T) {
	var text strings.Builder
	text.WriteString("device 0 arena 8 budget 8\n")
	for number := range maxClocks + 1 {
		fmt.Fprintf(&text, "0.%d s%d fence\n", number, number)
	}
	err := parsed(t, text.String()).Check().Err()
	if want := "V6: 8193 streams; the order of at most 8192 is looked at"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
