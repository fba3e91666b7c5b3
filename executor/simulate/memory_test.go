package simulate_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/simulate"
)

// TestMemory holds the live bytes of every moment against the stretches of time
// for which each buffer holds something, found one by one.
func TestMemory(t *testing.T) {
	for _, kind := range []costmodel.Schedule{
		{Kind: costmodel.OneFOneB, Stages: 4, Chunks: 1, MicroBatches: 9},
		{Kind: costmodel.GPipe, Stages: 3, Chunks: 1, MicroBatches: 5},
		{Kind: costmodel.Interleaved, Stages: 3, Chunks: 2, MicroBatches: 6},
	} {
		prog := schedule(kind, 2, costs{forward: 10, backward: 23, send: 7, latency: 2})
		for i := range prog.Buffers {
			prog.Buffers[i].Bytes = 1 << (i % 40) // sums tell which
		}
		prog.Buffers[0].Class = program.Weight
		result := run(t, prog)
		stretches := stretchesOf(prog, result)
		for index, device := range result.Devices {
			peak := int64(0)
			for at, moment := range device.Memory {
				if at > 0 && moment.Time <= device.Memory[at-1].Time {
					t.Fatalf("%v, device %d: moments %v out of order", kind, index, device.Memory[at-1:at+1])
				}
				peak = max(peak, moment.Bytes)
			}
			times := []int64{0, result.Makespan}
			for _, is := range stretches {
				times = append(times, is.from, is.from-1, is.to, is.to-1)
			}
			for _, time := range times {
				want := int64(0)
				for _, is := range stretches {
					if is.device == index && is.from <= time && time < is.to {
						want += is.bytes
					}
				}
				if got := usedAt(device, time); 0 <= time && time <= result.Makespan && got != want {
					t.Fatalf("%v, device %d, at %d: %b bytes, want %b", kind, index, time, got, want)
				}
			}
			if got, want := lifetimes(prog, result, index), occupied(device, result.Makespan); got != want {
				t.Errorf("%v, device %d: lives add up to %d bytes and ticks, want %d", kind, index, got, want)
			}
			if device.Peak.Bytes != peak || usedAt(device, device.Peak.Time) != peak || int(prog.Instrs[device.PeakAt].Device) != index {
				t.Errorf("%v, device %d: its peak is %v at %d, want %d", kind, index, device.Peak, device.PeakAt, peak)
			}
		}
	}
}

// lifetimes adds up bytes × ticks of a device's lives, and of its buffers that are there throughout.
func lifetimes(prog *program.Program, result *simulate.Result, index int) (sum int64) {
	for _, buffer := range prog.Buffers {
		if int(buffer.Device) == index && buffer.Class.Throughout() {
			sum += buffer.Bytes * result.Makespan
		}
	}
	for _, life := range result.Devices[index].Lives {
		sum += prog.Buffers[life.Buffer].Bytes * (life.To - life.From)
	}
	return sum
}

// occupied adds up what a device holds, tick by tick.
func occupied(device simulate.Device, end int64) (sum int64) {
	for time := range end {
		sum += usedAt(device, time)
	}
	return sum
}

// usedAt is what a device holds at a time.
func usedAt(device simulate.Device, time int64) int64 {
	bytes := int64(0)
	for _, moment := range device.Memory {
		if moment.Time <= time {
			bytes = moment.Bytes
		}
	}
	return bytes
}

type stretch struct {
	device          int
	from, to, bytes int64
}

// stretchesOf is when each buffer holds something.
func stretchesOf(prog *program.Program, result *simulate.Result) []stretch {
	type message struct{ channel, sequence int32 }
	sent := map[message]int64{}
	order := make([]int, len(prog.Instrs))
	for i, instr := range prog.Instrs {
		order[i] = i
		if instr.Op == program.Send {
			sent[message{instr.Channel, instr.Sequence}] = result.Start[i]
		}
	}
	slices.SortStableFunc(order, func(one, other int) int { return cmp.Compare(result.Start[one], result.Start[other]) })
	var all []stretch
	now := map[int32]int{} // the stretch of a buffer
	for _, i := range order {
		instr := &prog.Instrs[i]
		for _, access := range prog.Accesses[instr.FirstAccess:instr.EndAccess] {
			buffer := &prog.Buffers[access.Buffer]
			if access.Mode == program.Write {
				from := result.Start[i]
				if instr.Op == program.Recv {
					from = sent[message{instr.Channel, instr.Sequence}]
				}
				now[access.Buffer] = len(all)
				all = append(all, stretch{device: int(buffer.Device), from: from, bytes: buffer.Bytes})
			}
			if at, known := now[access.Buffer]; known {
				all[at].to = max(all[at].to, result.End[i])
			}
		}
	}
	always := slices.Clone(all[:0])
	for i := range prog.Buffers {
		if buffer := &prog.Buffers[i]; buffer.Class.Throughout() {
			for at, of := range now {
				if at == int32(i) {
					all[of].bytes = 0
				}
			}
			always = append(always, stretch{int(buffer.Device), 0, result.Makespan + 1, buffer.Bytes})
		}
	}
	return append(all, always...)
}
