package program

import (
	"bytes"
	"fmt"

	"github.com/devmap-dev/devmap/modelgraph"
)

// version is the format of programs, in text and in JSON.
const version = "devmap.program/v1"

// Parse reads a program, as text or as JSON; file appears in errors. A wrong form is an error. A
// name that refers to nothing is a fault that [Program.Check] reports.
func Parse(file string, data []byte) (*Program, error) {
	if len(data) > MaxBytes {
		return nil, &modelgraph.SyntaxError{File: file, Msg: fmt.Sprintf("larger than the %d MiB that a program may have", MaxBytes>>20)}
	}
	if begin := bytes.TrimLeft(data, " \t\r\n"); len(begin) > 0 && begin[0] == '{' {
		return parseJSON(file, data)
	}
	return parseText(file, data)
}

// parseText reads the lines twice: declarations first, so that they may come in any order, then
// instructions, which are most of them.
func parseText(file string, data []byte) (*Program, error) {
	reader := &textReader{builder: newBuilder()}
	reader.section = "line"
	for _, pass := range []func(*textReader, []byte) error{(*textReader).declaration, (*textReader).instruction} {
		reader.at = 0
		for rest := data; len(rest) > 0; {
			line, after, _ := bytes.Cut(rest, []byte("\n"))
			rest = after
			reader.at++
			if err := pass(reader, line); err != nil {
				return nil, &modelgraph.SyntaxError{File: file, Place: reader.place(), Msg: err.Error()}
			}
		}
	}
	if len(reader.names) == 0 {
		return nil, &modelgraph.SyntaxError{File: file, Msg: "no devices: this is no program (" + version + ", as `devmap emit PLAN --for program` writes it)"}
	}
	return reader.finish(), nil
}

// textReader reads the lines of a text.
type textReader struct {
	*builder
	rest    []byte   // of the line, after the words that are read
	routine *Routine // whose kernels may follow, indented
	seen    struct{ version, model, plan bool }
}

// word returns the next word of the line, empty at its end.
func (reader *textReader) word() []byte {
	line, begin := reader.rest, 0
	for begin < len(line) && isSpace(line[begin]) {
		begin++
	}
	end := begin
	for end < len(line) && !isSpace(line[end]) {
		end++
	}
	reader.rest = line[end:]
	return line[begin:end]
}

func isSpace(char byte) bool { return char == ' ' || char == '\t' || char == '\r' }

// end returns an error if a word follows.
func (reader *textReader) end() error {
	if word := reader.word(); len(word) > 0 {
		return wanted(word, "the end of the line")
	}
	return nil
}

// keyword returns an error if another word follows.
func (reader *textReader) keyword(want string) error {
	if word := reader.word(); string(word) != want {
		return wanted(word, want)
	}
	return nil
}

// index reads the number of a device, of an instruction or of a message.
func (reader *textReader) index() (int32, error) { return index(reader.word()) }

func index(word []byte) (int32, error) {
	value, err := number(word, maxIndex)
	return int32(value), err
}

// amount reads a number of bytes or ticks.
func (reader *textReader) amount() (int64, error) { return number(reader.word(), maxNumber) }

// amounts reads numbers up to the end of the line.
func (reader *textReader) amounts() (values []int64, err error) {
	for word := reader.word(); len(word) > 0; word = reader.word() {
		value, err := number(word, maxNumber)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}
