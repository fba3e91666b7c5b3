package executor

import (
	"context"
	"encoding/binary"
	"math"
)

// scanner looks in arenas for bytes that no step wrote.
type scanner struct {
	*sessionState
	result *Result
	// buffers are those of [scanner.look], for all arenas: each new one would be growth of the process.
	buffers chan []byte
}

// scan finds the bytes of every arena that are still poison. It compares words of four bytes,
// because a single byte of data may have all bits set. A value of fp32, two of bf16, or a token id
// never have.
func (run scanner) scan(ctx context.Context) error {
	run.buffers = buffers()
	for device := range run.job.Program.Devices {
		result := DeviceResult{Device: run.job.Program.Devices[device].ID}
		if run.job.Program.Devices[device].Arena > 0 {
			if err := run.scanDevice(ctx, device, &result); err != nil {
				return err
			}
		}
		run.result.Devices = append(run.result.Devices, result)
	}
	return nil
}

func (run scanner) scanDevice(ctx context.Context, device int, result *DeviceResult) error {
	plan, err := run.planOf(device)
	if err != nil {
		return err
	}
	for _, region := range plan.regions {
		result.Regions = append(result.Regions, RegionResult{Name: region.Name, PlannedBytes: region.End - region.First})
	}
	err = run.look(ctx, device, func(from, to int64, poisoned bool) {
		if poisoned {
			plan.untouched(from, to)
			return
		}
		result.Touched = to
		for i, region := range plan.regions {
			if from < region.End && to > region.First {
				result.Regions[i].TouchedBytes = min(to, region.End) - region.First
			}
		}
		result.Stray += plan.stray(from, to)
	})
	result.Gaps = plan.gaps
	return err
}

// spans divides bytes into ranges that are poison and ranges that are not.
type spans struct {
	tell     func(from, to int64, poisoned bool)
	from, at int64
	poisoned bool
}

// take continues with the next bytes, a multiple of eight of them. Most are far from a border. take
// skips eight bytes at once if all are poison, or if no upper half of a word is.
func (spans *spans) take(data []byte) {
	for len(data) > 0 {
		same := 0
		if spans.poisoned {
			for same < len(data) && binary.LittleEndian.Uint64(data[same:]) == math.MaxUint64 {
				same += 8
			}
		} else {
			for same < len(data) && plain(binary.LittleEndian.Uint64(data[same:])) {
				same += 8
			}
		}
		spans.at += int64(same)
		if data = data[same:]; len(data) > 0 {
			word := binary.LittleEndian.Uint64(data)
			spans.word(uint32(word))
			spans.word(uint32(word >> 32))
			data = data[8:]
		}
	}
}

// plain reports whether neither of two words has a poisoned upper half.
func plain(words uint64) bool {
	return uint32(words)>>16 != math.MaxUint16 && words>>48 != math.MaxUint16
}

// word takes four bytes. If the upper half is poison and the lower is not, the last value of a bf16
// tensor is there, followed by free room.
func (spans *spans) word(word uint32) {
	switch {
	case word == math.MaxUint32:
		spans.is(true, 4)
	case word>>16 == math.MaxUint16:
		spans.is(false, 2)
		spans.is(true, 2)
	default:
		spans.is(false, 4)
	}
}

func (spans *spans) is(poisoned bool, bytes int64) {
	if poisoned != spans.poisoned {
		spans.end()
		spans.from, spans.poisoned = spans.at, poisoned
	}
	spans.at += bytes
}

// end reports the range up to here.
func (spans *spans) end() {
	if spans.at > spans.from {
		spans.tell(spans.from, spans.at, spans.poisoned)
	}
}
