package costmodel

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
)

// Degree is over how many GPUs something is spread: a number, or [AutoDegree].
// The zero Degree, one that is left out, is 1.
type Degree int64

// AutoDegree is a degree that the planner chooses, for each stage.
const AutoDegree Degree = -1

const autoWord = "auto"

// Count is the number of GPUs: 1 if none is chosen yet.
func (degree Degree) Count() int64 { return max(1, int64(degree)) }

// String is the number, or auto.
func (degree Degree) String() string {
	if degree == AutoDegree {
		return autoWord
	}
	return strconv.FormatInt(degree.Count(), 10)
}

// Set reads what String writes.
func (degree *Degree) Set(text string) error {
	if text == autoWord {
		*degree = AutoDegree
		return nil
	}
	count, err := strconv.ParseInt(text, 10, 64)
	if err != nil || count < 1 || count > mostDegree {
		return fmt.Errorf("%q is no number of GPUs from 1 to %d, and not %s", text, int64(mostDegree), autoWord)
	}
	*degree = Degree(count)
	return nil
}

// mostDegree is more GPUs than any topology has.
const mostDegree = 1 << 20

// MarshalJSON writes the number, or "auto".
func (degree Degree) MarshalJSON() ([]byte, error) {
	if degree == AutoDegree {
		return json.Marshal(autoWord)
	}
	return json.Marshal(int64(degree))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (degree *Degree) UnmarshalJSON(data []byte) error {
	var count int64
	if err := json.Unmarshal(data, &count); err == nil {
		return degree.Set(strconv.FormatInt(count, 10))
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("%s is no number of GPUs", data)
	}
	return degree.Set(text)
}
