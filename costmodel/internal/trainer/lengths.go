package trainer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Lengths are the tokens of the samples of a data set.
type Lengths struct {
	// Mean and Max are of all samples.
	Mean float64 `json:"mean"`
	Max  int64   `json:"max"`
	// Counts are the lengths, ascending, each with its number of samples; nil with only Mean and
	// Max.
	Counts counts `json:"counts,omitzero"`
}

// counts are lengths and numbers of samples. Their text is one line: "512:3 700:1".
type counts [][2]int64

// MarshalText writes the line.
func (all counts) MarshalText() ([]byte, error) {
	var text []byte
	for i, one := range all {
		if i > 0 {
			text = append(text, ' ')
		}
		text = fmt.Appendf(text, "%d:%d", one[0], one[1])
	}
	return text, nil
}

// UnmarshalText reads it; [Lengths.Fault] checks the numbers.
func (all *counts) UnmarshalText(text []byte) error {
	*all = nil
	for word := range strings.FieldsSeq(string(text)) {
		length, count, _ := strings.Cut(word, ":")
		var one [2]int64
		for i, part := range []string{length, count} {
			var err error
			if one[i], err = strconv.ParseInt(part, 10, 64); err != nil || len(*all) >= mostLengths {
				return fmt.Errorf("%q is no LENGTH:SAMPLES, or follows %d others", word, len(*all))
			}
		}
		*all = append(*all, one)
	}
	return nil
}

// Bounds of the input; longer lists are rounded up to mostLengths lengths, for small plan files.
const (
	longest     = 1 << 32
	mostLengths = 4096
)

// Read takes "mean,max" if file is empty, else the text of a file with one length
// a line, or a JSON array. Errors name the file and the line.
func (lengths *Lengths) Read(file string, text []byte) error {
	if file == "" {
		read, err := meanMax(string(text))
		if err == nil {
			*lengths = *read
		}
		return err
	}
	read, err := readLengths(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	*lengths = *read
	return nil
}

// meanMax are lengths with a known mean and maximum.
func meanMax(text string) (*Lengths, error) {
	mean, most, _ := strings.Cut(text, ",")
	average, err := strconv.ParseFloat(strings.TrimSpace(mean), 64)
	if err != nil || !(average >= 1) {
		return nil, fmt.Errorf("%q is no mean of 1 or more", mean)
	}
	largest, err := strconv.ParseInt(strings.TrimSpace(most), 10, 64)
	if err != nil || largest < 1 || largest > longest {
		return nil, fmt.Errorf("%q is no maximum from 1 to 2^32", most)
	}
	if average > float64(largest) {
		return nil, fmt.Errorf("the mean %s is above the maximum %d", strings.TrimSpace(mean), largest)
	}
	return &Lengths{Mean: average, Max: largest}, nil
}

// readLengths reads one length a line, or a JSON array. Errors name the line.
func readLengths(text []byte) (*Lengths, error) {
	all := map[int64]int64{}
	var err error
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '[' {
		err = readArray(all, text)
	} else {
		err = readLines(all, text)
	}
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("line 1: there is no length: write one a line, or a JSON array")
	}
	out := &Lengths{}
	for length, count := range all {
		out.Counts = append(out.Counts, [2]int64{length, count})
	}
	slices.SortFunc(out.Counts, func(a, b [2]int64) int { return int(a[0] - b[0]) })
	out.compact()
	out.settle()
	return out, nil
}

func readLines(all map[int64]int64, text []byte) error {
	line := 0
	for row := range bytes.Lines(text) {
		line++
		word := string(bytes.TrimSpace(row))
		if word == "" {
			continue
		}
		if err := add(all, word, line); err != nil {
			return err
		}
	}
	return nil
}

func readArray(all map[int64]int64, text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	at := func() int { return 1 + bytes.Count(text[:decoder.InputOffset()], []byte("\n")) }
	if _, err := decoder.Token(); err != nil {
		return fmt.Errorf("line %d: %w", at(), err)
	}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return fmt.Errorf("line %d: %w", at(), err)
		}
		number, ok := token.(json.Number)
		if !ok {
			return fmt.Errorf("line %d: the array has %v in it, which is no number of tokens", at(), token)
		}
		if err := add(all, number.String(), at()); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return fmt.Errorf("line %d: %w", at(), err)
	}
	if rest := bytes.TrimSpace(text[decoder.InputOffset():]); len(rest) > 0 {
		return fmt.Errorf("line %d: there is more after the array", at())
	}
	return nil
}

// add counts one sample.
func add(all map[int64]int64, word string, line int) error {
	const shown = 40
	length, err := strconv.ParseInt(word, 10, 64)
	if err != nil || length < 1 || length > longest {
		return fmt.Errorf("line %d: %q is no number of tokens from 1 to 2^32", line, word[:min(len(word), shown)])
	}
	all[length]++
	return nil
}

// compact rounds lengths up to a number of values that stays small.
func (lengths *Lengths) compact() {
	if len(lengths.Counts) <= mostLengths {
		return
	}
	largest := lengths.Counts[len(lengths.Counts)-1][0]
	step := (largest + mostLengths - 1) / mostLengths
	var out [][2]int64
	for _, one := range lengths.Counts {
		length := min(largest, (one[0]+step-1)/step*step)
		if n := len(out); n > 0 && out[n-1][0] == length {
			out[n-1][1] += one[1]
		} else {
			out = append(out, [2]int64{length, one[1]})
		}
	}
	lengths.Counts = out
}

// settle works out the mean and the maximum.
func (lengths *Lengths) settle() {
	sum := 0.
	for _, one := range lengths.Counts {
		sum += float64(one[0]) * float64(one[1])
		lengths.Max = one[0]
	}
	lengths.Mean = math.Round(100*sum/float64(lengths.samples())) / 100
}

// samples is the number of samples; 0 if unknown.
func (lengths *Lengths) samples() (count int64) {
	for _, one := range lengths.Counts {
		count += one[1]
	}
	return count
}

// Fault returns what is wrong with a plan file's lengths; empty: nothing.
func (lengths *Lengths) Fault() string {
	if lengths.Max == 0 && lengths.Mean == 0 && len(lengths.Counts) == 0 {
		return ""
	}
	if !(lengths.Mean >= 1 && lengths.Mean <= float64(lengths.Max)+.01) || lengths.Max > longest {
		return fmt.Sprintf("a mean of %v and a maximum of %d tokens are of no samples", lengths.Mean, lengths.Max)
	}
	last, most := int64(0), int64(1<<40)
	for _, one := range lengths.Counts {
		if one[0] <= last || one[0] > lengths.Max || one[1] < 1 || one[1] > most {
			return fmt.Sprintf("counts: %d samples of %d tokens after those of %d", one[1], one[0], last)
		}
		last = one[0]
		most -= one[1]
	}
	if n := len(lengths.Counts); n > mostLengths || n > 0 && last != lengths.Max {
		return fmt.Sprintf("counts: %d lengths up to %d, and the maximum is %d", n, last, lengths.Max)
	}
	return ""
}

// cut are the lengths after a trainer truncated, or dropped, samples of more than seq tokens.
func (lengths *Lengths) cut(seq int64, drops bool) *Lengths {
	out := &Lengths{Mean: min(lengths.Mean, float64(seq)), Max: min(lengths.Max, seq)}
	for _, one := range lengths.Counts {
		if one[0] > seq && drops {
			continue
		}
		length := min(one[0], seq)
		if n := len(out.Counts); n > 0 && out.Counts[n-1][0] == length {
			out.Counts[n-1][1] += one[1]
		} else {
			out.Counts = append(out.Counts, [2]int64{length, one[1]})
		}
	}
	if len(out.Counts) > 0 {
		out.settle()
	}
	return out
}

// LabelFault returns what is wrong with a number or fraction of label tokens; empty: nothing.
func LabelFault(labels float64) string {
	if labels >= 0 && labels <= longest && (labels <= 1 || labels == math.Trunc(labels)) {
		return ""
	}
	return fmt.Sprintf("%v is neither a fraction up to 1 nor a number of tokens", labels)
}
