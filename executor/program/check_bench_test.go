package program

import "testing"

// BenchmarkCheck checks a million instructions of eight devices, and as many of
// 64: a training step of 1F1B with thousands of micro-batches, as an engine
// would write it. Reading the text is not counted.
func BenchmarkCheck(b *testing.B) {
	for _, of := range []struct {
		name string
		pipeline
	}{
		{"8devices", pipeline{devices: 8, micros: 5900, units: 8, slots: 2}},
		{"64devices", pipeline{devices: 64, micros: 740, units: 8, slots: 2}},
	} {
		b.Run(of.name, func(b *testing.B) {
			written := programText{pipeline: of.pipeline}
			program := parsed(b, written.String())
			b.ReportAllocs()
			for b.Loop() {
				if err := program.Check().Err(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(program.Instrs)), "instructions")
		})
	}
}
