package serve

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
)

// Change is settings with which a question has an answer, which [Solve] found.
type Change struct {
	Set     []costmodel.Setting
	Without []string // fields to leave out
	GPUs    int      // 0: as they are
	Text    string   // what then fits
}

// Changes are single changes of a question that has no answer, and if none helps, several together.
func (question *Question) Changes() (changes []Change) {
	try := func(change Change, apply func(*Question)) {
		other := *question
		apply(&other)
		if answer, err := Solve(other); err == nil {
			if question.Set.Context > 0 && other.Set.Context == 0 {
				change.Set = append(change.Set, costmodel.Setting{Field: "context", Value: fmt.Sprint(answer.Set.Context)})
			}
			change.Text = answer.summary()
			changes = append(changes, change)
		}
	}
	set := func(field, value string) []costmodel.Setting {
		return []costmodel.Setting{{Field: field, Value: value}}
	}
	smaller := func(other *Question) {
		if other.Set.Context > shortest {
			other.Set.Context = 0
		}
	}
	cheaper := func(kind string) func(*Question) {
		return func(other *Question) { other.Set.KeyType, other.Set.ValueType = kind, kind }
	}
	alone := func(other *Question) {
		other.Set.Outputs /= max(1, other.Set.Sequences)
		other.Set.Sequences = 1
	}
	const narrow = 128
	if question.Set.Context > shortest {
		try(Change{}, smaller)
	}
	if question.Set.KeyType == "f16" || question.Set.KeyType == "bf16" {
		try(Change{Set: set("kv_type", "q8_0")}, cheaper("q8_0"))
		try(Change{Set: set("kv_type", "q4_0")}, cheaper("q4_0"))
	}
	if question.Set.Sequences > 1 {
		try(Change{Set: set("sequences", "1")}, alone)
	}
	if question.Set.UBatch > narrow {
		try(Change{Set: set("ubatch", fmt.Sprint(narrow))}, func(other *Question) { other.Set.UBatch = narrow })
	}
	if question.Draft != nil {
		try(Change{Without: []string{"draft"}}, func(other *Question) {
			other.Draft, other.Set.Outputs = nil, other.Set.Sequences
		})
	}
	if question.Encoder != nil {
		try(Change{Without: []string{"mmproj"}}, func(other *Question) { other.Encoder = nil })
	}
	if len(changes) == 0 {
		together := append(set("kv_type", "q4_0"), costmodel.Setting{Field: "sequences", Value: "1"}, costmodel.Setting{Field: "ubatch", Value: fmt.Sprint(narrow)})
		try(Change{Set: together}, func(other *Question) {
			smaller(other)
			cheaper("q4_0")(other)
			alone(other)
			other.Set.UBatch = narrow
		})
	}
	most := len(changes) + 1
	for count := len(question.Devices) + 1; count <= 8*len(question.Devices) && len(changes) < most; count++ {
		try(Change{GPUs: count}, func(other *Question) { other.Devices = question.more(count) })
	}
	return changes
}

// more are the devices with copies of the largest.
func (question *Question) more(count int) []Device {
	devices := append([]Device{}, question.Devices...)
	largest := devices[0]
	for _, device := range devices {
		if device.Budget > largest.Budget {
			largest = device
		}
	}
	for len(devices) < count {
		devices = append(devices, largest)
	}
	return devices
}

// summary says what fits, and what of it is on the host.
func (answer *Answer) summary() string {
	text := fmt.Sprintf("%d tokens, fullest GPU %.1f %%", answer.Set.Context, 100*answer.Share)
	switch {
	case answer.Set.HostExperts > 0:
		text += fmt.Sprintf(", experts of %d blocks on the host", answer.Set.HostExperts)
	case answer.Set.HostBlocks > 0:
		text += fmt.Sprintf(", %d of %d blocks on the host", answer.Set.HostBlocks, len(answer.onDevices())+int(answer.Set.HostBlocks))
	}
	return text
}

// onDevices lists the device of each block that is on one.
func (answer *Answer) onDevices() (devices []int) {
	for device, count := range answer.Counts {
		for range count {
			devices = append(devices, device)
		}
	}
	return devices[:max(0, len(devices)-1)] // the output is last
}
