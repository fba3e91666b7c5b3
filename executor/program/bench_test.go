package program

import (
	"bytes"
	"fmt"
	"io"
	"testing"
)

// long is a text of about that many instructions on 8 devices of 4 streams,
// with names as long as a model's are.
func long(instrs int) []byte {
	var text bytes.Buffer
	const devices, layers = 8, 16
	for device := range devices {
		fmt.Fprintf(&text, "device %d arena 1000000 budget 1000000\nchannel act[%d] %d>%d slots 2 bytes 256\n", device, device, device, (device+1)%devices)
		for layer := range layers {
			unit := fmt.Sprintf("model.layers.%d", device*layers+layer)
			fmt.Fprintf(&text, "routine %s %s\nbuffer %d %s.weights %d +256 weight\nbuffer %d %s.saved[0] %d +256 saved\n", unit, unit, device, unit, layer*512, device, unit, layer*512+256)
		}
	}
	for number := range instrs / devices {
		layer := number % layers
		for device := range devices {
			unit := fmt.Sprintf("model.layers.%d", device*layers+layer)
			if layer == 0 {
				fmt.Fprintf(&text, "%d.%d to%d send mb%d act[%d]#%d %s.saved[0] after compute:%d.%d\n", device, number, number%4, number/layers, device, number/layers, unit, device, max(0, number-1))
				continue
			}
			fmt.Fprintf(&text, "%d.%d compute forward %s mb%d %s.weights >%s.saved[0]\n", device, number, unit, number/layers, unit, unit)
		}
	}
	return text.Bytes()
}

func BenchmarkParse(b *testing.B) {
	data := long(100_000)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("p", data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkText(b *testing.B) {
	program, err := Parse("p", long(100_000))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := program.Text(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}
