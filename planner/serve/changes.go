package serve

import (
	"cmp"
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

	hosted int64
}

// attempt is a change that may help.
type attempt struct {
	when   bool
	change Change
	apply  func(*Question)
}

// attempts are the single changes of a question, and last several together.
func (question *Question) attempts() []attempt {
	const narrow = 128
	set := func(field string, value any) costmodel.Setting {
		return costmodel.Setting{Field: field, Value: fmt.Sprint(value)}
	}
	one := func(settings ...costmodel.Setting) Change { return Change{Set: settings} }
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
	narrower := func(other *Question) { other.Set.UBatch = min(narrow, other.Set.UBatch) }
	wide := question.Set.KeyType == "f16" || question.Set.KeyType == "bf16"
	return []attempt{
		{question.Set.Context > shortest, Change{}, smaller},
		{wide, one(set("kv_type", "q8_0")), cheaper("q8_0")},
		{wide, one(set("kv_type", "q4_0")), cheaper("q4_0")},
		{question.Set.Sequences > 1, one(set("sequences", 1)), alone},
		{question.Set.UBatch > narrow, one(set("ubatch", narrow)), narrower},
		{question.Draft != nil, Change{Without: []string{"draft"}}, func(other *Question) { other.Draft, other.Set.Outputs = nil, other.Set.Sequences }},
		{question.Encoder != nil, Change{Without: []string{"mmproj"}}, func(other *Question) { other.Encoder = nil }},
		{true, one(set("kv_type", "q4_0"), set("sequences", 1), set("ubatch", min(narrow, question.Set.UBatch))), func(other *Question) {
			smaller(other)
			cheaper("q4_0")(other)
			alone(other)
			narrower(other)
		}},
	}
}

// Changes are single changes of a question that has no answer, and if none helps, several together.
// Those that leave nothing on the host come first.
func (question *Question) Changes() (changes []Change) {
	attempts := question.attempts()
	for i, attempt := range attempts {
		if together := i == len(attempts)-1; !attempt.when || together && len(changes) > 0 {
			continue
		}
		other := *question
		attempt.apply(&other)
		answer, err := Solve(other)
		if err != nil {
			continue
		}
		change := attempt.change
		if question.Set.Context > 0 && other.Set.Context == 0 {
			change.Set = append(change.Set, costmodel.Setting{Field: "context", Value: fmt.Sprint(answer.Set.Context)})
		}
		change.Text, change.hosted = answer.Summary(), answer.hosts()
		changes = append(changes, change)
	}
	changes = append(changes, question.moreGPUs()...)
	slices.SortStableFunc(changes, func(one, other Change) int { return cmp.Compare(min(1, one.hosted), min(1, other.hosted)) })
	return changes
}

// hosts is the number of blocks that are on the host, or whose experts are.
func (answer *Answer) hosts() int64 { return answer.Set.HostBlocks + answer.Set.HostExperts }

// moreGPUs is the smallest number of GPUs with which nothing is on the host, or else something fits.
func (question *Question) moreGPUs() (changes []Change) {
	const most = 8 // times the devices
	for count := len(question.Devices) + 1; count <= min(most*len(question.Devices), costmodel.MaxDevices); count++ {
		other := *question
		other.Devices = slices.Concat(question.Devices, slices.Repeat([]Device{question.Devices[question.Largest()]}, count-len(question.Devices)))
		other.DraftOn = other.Largest()
		answer, err := Solve(other)
		if err != nil {
			continue
		}
		change := Change{GPUs: count, Text: answer.Summary(), hosted: answer.hosts()}
		if change.hosted == 0 {
			return []Change{change}
		}
		if changes == nil {
			changes = []Change{change}
		}
	}
	return changes
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
