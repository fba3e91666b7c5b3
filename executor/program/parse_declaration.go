package program

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// declarations reads the lines that are not instructions, by their first word.
var declarations = map[string]func(*textReader) error{
	"program":   (*textReader).version,
	"model":     (*textReader).model,
	"plan":      (*textReader).plan,
	"time":      (*textReader).time,
	"predicted": (*textReader).predicted,
	"device":    (*textReader).deviceLine,
	"buffer":    (*textReader).buffer,
	"channel":   (*textReader).channel,
	"link":      (*textReader).link,
	"routine":   (*textReader).routineLine,
	"ticks":     (*textReader).ticksLine,
}

// declaration reads a line other than an instruction.
func (reader *textReader) declaration(line []byte) error {
	reader.rest = line
	word := reader.word()
	switch {
	case len(word) == 0:
		return nil
	case isSpace(line[0]) && reader.routine == nil:
		return fmt.Errorf("%s: an indented line is a kernel, below its routine", quoted(string(word)))
	case isSpace(line[0]):
		kernel := string(bytes.TrimSpace(line))
		if !isKernel(kernel) {
			return wanted(kernel, "a kernel in one line of printable text")
		}
		reader.routine.Kernels = append(reader.routine.Kernels, kernel)
		return nil
	case word[0] == '#':
		return nil
	}
	reader.routine = nil
	if '0' <= word[0] && word[0] <= '9' {
		return nil
	}
	read, ok := declarations[string(word)]
	if !ok {
		return wanted(word, "an instruction (DEVICE.NUMBER …), or one of "+strings.Join(slices.Sorted(maps.Keys(declarations)), ", "))
	}
	return read(reader)
}

// version reads program devmap.program/v1.
func (reader *textReader) version() error {
	if err := once(&reader.seen.version, "program"); err != nil {
		return err
	}
	if err := reader.keyword(version); err != nil {
		return err
	}
	return reader.end()
}

// once returns an error for the second line of a kind that may occur once.
func once(seen *bool, what string) error {
	if *seen {
		return fmt.Errorf("%q stands twice", what)
	}
	*seen = true
	return nil
}

// model reads model "NAME".
func (reader *textReader) model() error {
	if err := once(&reader.seen.model, "model"); err != nil {
		return err
	}
	rest := strings.TrimSpace(string(reader.rest))
	name, err := strconv.Unquote(rest)
	if err != nil || rest[0] != '"' || !utf8.ValidString(name) {
		return wanted(rest, "a name in quotes")
	}
	reader.program.Model = name
	return nil
}

// plan reads plan DIGEST.
func (reader *textReader) plan() error {
	if err := once(&reader.seen.plan, "plan"); err != nil {
		return err
	}
	word := reader.word()
	if !isPlain(string(word)) {
		return wanted(word, "a digest")
	}
	reader.program.Plan = string(word)
	return reader.end()
}

// time reads time picoseconds.
func (reader *textReader) time() error {
	reader.program.Timed = true
	if err := reader.keyword("picoseconds"); err != nil {
		return err
	}
	return reader.end()
}

// predicted reads predicted RUNTIME step TICKS peaks BYTES….
func (reader *textReader) predicted() error {
	runtime := reader.word()
	if !isName(runtime) {
		return wanted(runtime, "a runtime")
	}
	prediction := Prediction{Runtime: string(runtime)}
	err := reader.keyword("step")
	if err == nil {
		prediction.StepTicks, err = reader.amount()
	}
	if err == nil {
		err = reader.keyword("peaks")
	}
	if err == nil {
		prediction.Peaks, err = reader.amounts()
	}
	reader.program.Predictions = append(reader.program.Predictions, prediction)
	return err
}

// ticksLine reads ticks D OP NAME TICKS, or ticks D.N TICKS.
func (reader *textReader) ticksLine() error {
	ticks := writtenTicks{place: reader.place()}
	var err error
	word := reader.word()
	if bytes.IndexByte(word, '.') >= 0 {
		ticks.device, ticks.number, err = place(word)
	} else if ticks.device, err = index(word); err == nil {
		err = reader.ticksObject(&ticks)
	}
	if err != nil {
		return err
	}
	if ticks.ticks, err = reader.amount(); err != nil {
		return err
	}
	reader.ticks = append(reader.ticks, ticks)
	return reader.end()
}

func (reader *textReader) ticksObject(ticks *writtenTicks) (err error) {
	if ticks.op, err = operation(reader.word()); err != nil {
		return err
	}
	object := reader.word()
	if !isObject(object) {
		return wanted(object, "a routine, or the buffer that is changed first")
	}
	ticks.object = string(object)
	return nil
}
