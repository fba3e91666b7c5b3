package timeline

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Limits on a log of allocations.
const (
	mostEvents  = 4 << 20
	mostDevices = 1024
	mostStreams = 1024
	mostBytes   = 1 << 50
)

// allocations is devmap.allocations/v1.
type allocations struct {
	FormatVersion string `json:"format_version"`
	Devices       int    `json:"devices"`
	Blocks        bool   `json:"blocks,omitzero"`
	Events        events `json:"events"`
}

// event is [id, device, bytes, stream, inside] of an allocation, [-id] of a free, and [0, device, 0
// or 1] of empty_cache or of a reset of the peaks.
type event [5]int64

type events []event

// UnmarshalJSONFrom reads events one by one, to refuse long logs before they are in memory.
func (log *events) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	if token, err := decoder.ReadToken(); err != nil || token.Kind() != '[' {
		return orNot(err, "a list of events")
	}
	for decoder.PeekKind() == '[' {
		if len(*log) == mostEvents {
			return fmt.Errorf("more than %d events: measure fewer steps", mostEvents)
		}
		var numbers []int64
		if err := json.UnmarshalDecode(decoder, &numbers); err != nil {
			return err
		}
		var one event
		if !wellFormed(numbers) {
			return fmt.Errorf("event %d has %d numbers: write [id, device, bytes], [-id] or [0, device, 0 or 1]", len(*log), len(numbers))
		}
		copy(one[:], numbers)
		*log = append(*log, one)
	}
	token, err := decoder.ReadToken()
	if err == nil && token.Kind() != ']' {
		err = fmt.Errorf("event %d is no list of numbers", len(*log))
	}
	return err
}

func wellFormed(numbers []int64) bool {
	switch {
	case len(numbers) == 0:
		return false
	case numbers[0] < 0:
		return len(numbers) == 1
	case numbers[0] == 0:
		return len(numbers) == 3
	}
	return len(numbers) >= 3 && len(numbers) <= len(event{})
}

func orNot(err error, want string) error {
	if err == nil {
		err = fmt.Errorf("not %s", want)
	}
	return err
}

// replayed is devmap.replay/v1.
type replayed struct {
	FormatVersion string           `json:"format_version"`
	Devices       []replayedDevice `json:"devices"`
}

type replayedDevice struct {
	PeakAllocatedBytes int64 `json:"peak_allocated_bytes"`
	PeakEvent          int   `json:"peak_event"` // -1 if nothing was allocated
	AllocatedBytes     int64 `json:"allocated_bytes"`
	ReservedBytes      int64 `json:"reserved_bytes"`
	PeakReservedBytes  int64 `json:"peak_reserved_bytes"`
	LeastReservedBytes int64 `json:"least_reserved_bytes"`
	// Blocks are the sizes of what was made, in order, if they were asked for.
	Blocks []int64 `json:"blocks,omitzero"`
}

// Replay runs a log of allocations (devmap.allocations/v1) through a model of PyTorch's caching
// allocator, and returns each device's allocated and reserved bytes, as devmap.replay/v1. Reserved
// is a range: with the allocations inside of kernels, and without. Errors name file.
func Replay(file string, data []byte) (any, error) {
	var log allocations
	if err := modelgraph.DecodeJSON(file, data, &log, true); err != nil {
		return nil, err
	}
	const version = "devmap.allocations/v1"
	switch {
	case log.FormatVersion != version:
		return nil, &modelgraph.SyntaxError{File: file, Place: "format_version", Msg: fmt.Sprintf("%q is not %q", log.FormatVersion, version)}
	case log.Devices < 1 || log.Devices > mostDevices:
		return nil, &modelgraph.SyntaxError{File: file, Place: "devices", Msg: fmt.Sprintf("%d is not 1 to %d", log.Devices, mostDevices)}
	}
	with, without := newReplay(log.Devices, true), newReplay(log.Devices, false)
	for at := range log.Events {
		for _, replay := range []*replay{with, without} {
			if fault := replay.apply(at, &log.Events[at]); fault != "" {
				return nil, &modelgraph.SyntaxError{File: file, Place: fmt.Sprintf("events[%d]", at), Msg: fault}
			}
		}
	}
	result := replayed{FormatVersion: "devmap.replay/v1", Devices: with.devices}
	for index := range result.Devices {
		device, cache, least := &result.Devices[index], with.caches[index], without.caches[index]
		if !log.Blocks {
			device.Blocks = nil
		}
		device.AllocatedBytes, device.ReservedBytes = cache.Allocated, cache.Reserved
		device.PeakAllocatedBytes = cache.PeakAllocated
		device.LeastReservedBytes = min(cache.PeakReserved, least.PeakReserved)
		device.PeakReservedBytes = max(cache.PeakReserved, least.PeakReserved)
	}
	return result, nil
}

// replay is a log that is replayed on all devices, with the allocations inside of kernels or without.
type replay struct {
	inside  bool
	caches  []*allocator.Cache
	devices []replayedDevice
	blocks  map[int64]placed
}

type placed struct {
	block  *allocator.Block // nil if it is passed over
	device int64
}

func newReplay(devices int, inside bool) *replay {
	made := &replay{inside: inside, devices: make([]replayedDevice, devices), blocks: make(map[int64]placed)}
	for index := range devices {
		made.caches = append(made.caches, allocator.NewCache())
		made.devices[index].PeakEvent = -1
	}
	return made
}

// apply applies one event. It returns what is wrong with the event, or "".
func (replay *replay) apply(at int, one *event) string {
	id, device, bytes := one[0], one[1], one[2]
	if id < 0 {
		found, ok := replay.blocks[-id]
		if !ok {
			return fmt.Sprintf("%d is not alive", -id)
		}
		delete(replay.blocks, -id)
		if found.block != nil {
			replay.caches[found.device].Free(found.block)
		}
		return ""
	}
	if device < 0 || device >= int64(len(replay.caches)) {
		return fmt.Sprintf("device %d of %d", device, len(replay.caches))
	}
	if id > 0 {
		return replay.born(at, one)
	}
	switch cache := replay.caches[device]; bytes {
	case 0:
		cache.Empty()
	case 1:
		cache.ResetPeaks()
		replay.devices[device].PeakEvent = at
	default:
		return fmt.Sprintf("[0, %d, %d]: the last number is 0 (empty_cache) or 1 (reset of peaks)", device, bytes)
	}
	return ""
}

func (replay *replay) born(at int, one *event) string {
	id, device, bytes, stream, inside := one[0], one[1], one[2], one[3], one[4]
	cache := replay.caches[device]
	switch _, alive := replay.blocks[id]; {
	case alive:
		return fmt.Sprintf("%d is alive already", id)
	case bytes < 1 || bytes > mostBytes:
		return fmt.Sprintf("%d bytes are not 1 to %d", bytes, int64(mostBytes))
	case stream < 0 || stream >= mostStreams:
		return fmt.Sprintf("stream %d is not 0 to %d", stream, mostStreams-1)
	case inside != 0 && inside != 1:
		return fmt.Sprintf("the fifth number is %d: 1 marks an allocation inside of a kernel", inside)
	case cache.Reserved > mostBytes:
		return fmt.Sprintf("more than %d bytes in use", int64(mostBytes))
	}
	if inside == 1 && !replay.inside {
		replay.blocks[id] = placed{nil, device}
		return ""
	}
	before := cache.PeakAllocated
	block := cache.Alloc(int(stream), bytes)
	replay.blocks[id] = placed{block, device}
	replay.devices[device].Blocks = append(replay.devices[device].Blocks, block.Size)
	if cache.PeakAllocated > before {
		replay.devices[device].PeakEvent = at
	}
	return ""
}
