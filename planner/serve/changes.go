package serve

import (
	"fmt"
	"slices"

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
			change.Text = answer.Summary()
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
	largest := question.Devices[question.Largest()]
	return slices.Concat(question.Devices, slices.Repeat([]Device{largest}, count-len(question.Devices)))
}

// Summary says what fits, and what of it is on the host.
func (answer *Answer) Summary() string {
	text := fmt.Sprintf("%d tokens, fullest GPU %.1f %%", answer.Set.Context, 100*answer.Share)
	switch {
	case answer.Set.HostExperts > 0:
		text += fmt.Sprintf(", experts of %s on the host", blocks(answer.Set.HostExperts))
	case answer.Set.HostBlocks > 0:
		text += fmt.Sprintf(", %s on the host", blocks(answer.Set.HostBlocks))
	}
	return text
}

func blocks(count int64) string {
	if count == 1 {
		return "1 block"
	}
	return fmt.Sprintf("%d blocks", count)
}
