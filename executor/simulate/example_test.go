package simulate_test

import (
	"fmt"
	"log"

	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/simulate"
)

// Two devices: the second one continues with what the first one made.
func ExampleRun() {
	none := program.None
	prog := &program.Program{
		Devices: []program.Device{
			{ID: 0, Streams: []string{"compute", "to1"}, First: 0, End: 2},
			{ID: 1, Streams: []string{"compute"}, First: 2, End: 5},
		},
		Channels: []program.Channel{{Name: "act[1]", From: 0, To: 1, Slots: 1, Bytes: 512}},
		Routines: []program.Routine{{Name: "embed"}, {Name: "head"}},
		Buffers: []program.Buffer{
			{Device: 0, Name: "out", Bytes: 512, Class: program.Stream},
			{Device: 1, Name: "act[1].slot[0]", Bytes: 512, Class: program.Slot},
		},
		Accesses: []program.Access{{Buffer: 0, Mode: program.Write}, {Buffer: 0}, {Buffer: 1, Mode: program.Write}, {Buffer: 1}},
		Waits:    []program.Wait{{Instr: 0}},
		Instrs: []program.Instr{
			{Device: 0, Op: program.Forward, Routine: 0, Channel: none, FirstAccess: 0, EndAccess: 1},
			{Device: 0, Op: program.Send, Stream: 1, Routine: none, MicroBatch: none, FirstAccess: 1, EndAccess: 2, FirstWait: 0, EndWait: 1},
			{Device: 1, Op: program.Recv, Routine: none, MicroBatch: none, FirstAccess: 2, EndAccess: 3},
			{Device: 1, Op: program.Forward, Routine: 1, Channel: none, FirstAccess: 3, EndAccess: 4},
			{Device: 1, Op: program.Free, Routine: none, MicroBatch: none},
		},
	}
	result, err := simulate.Run(prog)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("step:", result.Makespan, "forwards")
	for i, device := range result.Devices {
		fmt.Printf("device %d idles for %.0f %% of it and holds %d bytes at %s\n", i, 100*result.Bubble(i), device.Peak.Bytes, prog.Place(device.PeakAt))
	}
	// Output:
	// step: 2 forwards
	// device 0 idles for 50 % of it and holds 512 bytes at 0.0
	// device 1 idles for 50 % of it and holds 512 bytes at 1.0
}
