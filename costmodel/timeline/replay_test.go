package timeline_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/fixtures"
)

const mib = 1 << 20

func logOf(devices int, events string) []byte {
	return fmt.Appendf(nil, `{"format_version": "devmap.allocations/v1", "devices": %d, "events": [%s]}`, devices, events)
}

// device is devmap.replay/v1 as its reader sees it.
type device struct {
	Peak     int64 `json:"peak_allocated_bytes"`
	Event    int   `json:"peak_event"`
	Now      int64 `json:"allocated_bytes"`
	Reserved int64 `json:"reserved_bytes"`
	Most     int64 `json:"peak_reserved_bytes"`
	Least    int64 `json:"least_reserved_bytes"`
}

func TestReplay(t *testing.T) {
	for name, is := range map[string]struct {
		devices int
		events  string
		want    []device
	}{
		"nothing": {1, "", []device{{Event: -1}}},
		// 11 MiB is a segment of 12 MiB: the rest of 1 MiB is not split off.
		"the rest of a segment": {1, fmt.Sprintf("[1,0,%d],[-1]", 11*mib), []device{{Peak: 12 * mib, Reserved: 12 * mib, Most: 12 * mib, Least: 12 * mib}}},
		"two devices":           {2, fmt.Sprintf("[1,1,1],[2,0,%d],[-1]", 2*mib), []device{{Peak: 2 * mib, Event: 1, Now: 2 * mib, Reserved: 20 * mib, Most: 20 * mib, Least: 20 * mib}, {Peak: 512, Reserved: 2 * mib, Most: 2 * mib, Least: 2 * mib}}},
		"an empty cache":        {1, fmt.Sprintf("[1,0,%d],[-1],[0,0,0]", 30*mib), []device{{Peak: 30 * mib, Most: 30 * mib, Least: 30 * mib}}},
		"a reset":               {1, fmt.Sprintf("[1,0,%d],[-1],[0,0,1],[2,0,512]", 30*mib), []device{{Peak: 512, Event: 3, Now: 512, Reserved: 32 * mib, Most: 32 * mib, Least: 32 * mib}}},
		"two streams":           {1, "[1,0,512],[2,0,512,7]", []device{{Peak: 1024, Event: 1, Now: 1024, Reserved: 4 * mib, Most: 4 * mib, Least: 4 * mib}}},
		"inside of a kernel":    {1, fmt.Sprintf("[1,0,512],[2,0,%d,0,1],[-2]", 30*mib), []device{{Peak: 30*mib + 512, Event: 1, Now: 512, Reserved: 32 * mib, Most: 32 * mib, Least: 2 * mib}}},
	} {
		t.Run(name, func(t *testing.T) {
			answer := fixtures.Must(timeline.Replay("log.json", logOf(is.devices, is.events)))(t)
			text := fixtures.Must(json.Marshal(answer))(t)
			var got struct{ Devices []device }
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(got.Devices) != fmt.Sprint(is.want) {
				t.Errorf("%+v, want %+v", got.Devices, is.want)
			}
		})
	}
}

func TestReplayRefuses(t *testing.T) {
	for events, want := range map[string]string{
		"[1,0,512],[1,0,512]":    "events[1]: 1 is alive already",
		"[-3]":                   "events[0]: 3 is not alive",
		"[1,2,512]":              "device 2 of 1",
		"[1,0,0]":                "0 bytes are not 1 to",
		"[1,0,2251799813685248]": "bytes are not 1 to",
		"[1,0,512,-1]":           "stream -1",
		"[1,0,512,0,2]":          "the fifth number is 2",
		"[0,0,9]":                "the last number is 0",
		"[1,0]":                  "event 0 has 2 numbers",
		"[]":                     "event 0 has 0 numbers",
		"[1,0,512,0,0,0]":        "event 0 has 6 numbers",
		"[-1,0]":                 "event 0 has 2 numbers",
		"7":                      "event 0 is no list",
		"[1,0,1.5]":              "1.5",
	} {
		if _, err := timeline.Replay("log.json", logOf(1, events)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "log.json") {
			t.Errorf("%s: %v, want %q", events, err, want)
		}
	}
	for text, want := range map[string]string{
		`{"format_version": "devmap.plan/v1", "devices": 1, "events": []}`:         "is not",
		`{"format_version": "devmap.allocations/v1", "devices": 0, "events": []}`:  "0 is not 1 to 1024",
		`{"format_version": "devmap.allocations/v1", "devices": 1, "events": {}}`:  "a list of events",
		`{"format_version": "devmap.allocations/v1", "devices": 1, "steps": true}`: "unknown field",
	} {
		if _, err := timeline.Replay("log.json", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// FuzzReplay: any file is answered or refused, and no device holds more than it reserved.
func FuzzReplay(f *testing.F) {
	f.Add(logOf(2, "[1,0,512],[2,1,1048577,1,1],[-1],[0,0,0],[0,1,1],[-2]"))
	f.Add(logOf(1, "[1,0,1125899906842624],[2,0,1125899906842624]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		answer, err := timeline.Replay("log.json", data)
		if err != nil {
			return
		}
		text := fixtures.Must(json.Marshal(answer))(t)
		var got struct{ Devices []device }
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		for _, one := range got.Devices {
			if one.Peak < one.Now || one.Most < one.Least || one.Reserved < one.Now {
				t.Errorf("%s: %+v", data, one)
			}
		}
	})
}

func ExampleReplay() {
	answer, err := timeline.Replay("log.json", logOf(1, "[1,0,11534336],[-1]"))
	if err != nil {
		panic(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		panic(err)
	}
	// Output:
	// {"format_version":"devmap.replay/v1","devices":[{"peak_allocated_bytes":12582912,"peak_event":0,"allocated_bytes":0,"reserved_bytes":12582912,"peak_reserved_bytes":12582912,"least_reserved_bytes":12582912}]}
}
