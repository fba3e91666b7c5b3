package program

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// deviceLine reads device D arena BYTES budget BYTES.
func (reader *textReader) deviceLine() error {
	id, err := reader.index()
	if err != nil {
		return err
	}
	var sizes [2]int64
	for i, word := range []string{"arena", "budget"} {
		if err := reader.keyword(word); err != nil {
			return err
		}
		if sizes[i], err = reader.amount(); err != nil {
			return err
		}
	}
	if err := reader.declareDevice(id, sizes[0], sizes[1]); err != nil {
		return err
	}
	return reader.end()
}

// buffer reads buffer D NAME OFFSET +BYTES CLASS.
func (reader *textReader) buffer() error {
	id, err := reader.index()
	if err != nil {
		return err
	}
	name := reader.word()
	if !isObject(name) {
		return wanted(name, "a buffer's name: letters, digits, . _ [ ], not after, not mbK")
	}
	offset, err := reader.amount()
	if err != nil {
		return err
	}
	sized := reader.word()
	if len(sized) == 0 || sized[0] != '+' {
		return wanted(sized, "+BYTES")
	}
	size, err := number(sized[1:], maxNumber)
	if err != nil {
		return wanted(sized, "+BYTES")
	}
	class := reader.word()
	if !isName(class) {
		return wanted(class, "a class of buffers")
	}
	if err := reader.declareBuffer(id, Buffer{Name: string(name), Offset: offset, Bytes: size, Class: Class(class)}); err != nil {
		return err
	}
	return reader.end()
}

// channel reads channel NAME SRC>DST slots N bytes B.
func (reader *textReader) channel() error {
	name := reader.word()
	if !isChannel(name) {
		return wanted(name, "a channel's name: letters, digits, _ [ ]")
	}
	ends := reader.word()
	source, target, _ := bytes.Cut(ends, []byte(">"))
	from, err := index(source)
	if err != nil {
		return wanted(ends, "DEVICE>DEVICE")
	}
	to, err := index(target)
	if err != nil {
		return wanted(ends, "DEVICE>DEVICE")
	}
	channel := Channel{Name: string(name)}
	if err := reader.keyword("slots"); err != nil {
		return err
	}
	slots, err := number(reader.word(), maxSlots+1)
	if err != nil {
		return fmt.Errorf("slots: %w", err)
	}
	channel.Slots = int32(slots)
	if err := reader.keyword("bytes"); err != nil {
		return err
	}
	if channel.Bytes, err = reader.amount(); err != nil {
		return err
	}
	if err := reader.declareChannel(from, to, channel); err != nil {
		return err
	}
	return reader.end()
}

// link reads link CHANNEL TICKS LATENCY.
func (reader *textReader) link() error {
	name := reader.word()
	if !isChannel(name) {
		return wanted(name, "a channel")
	}
	link := writtenLink{channel: string(name), place: reader.place()}
	var err error
	if link.ticks, err = reader.amount(); err != nil {
		return err
	}
	if link.latency, err = reader.amount(); err != nil {
		return err
	}
	reader.links = append(reader.links, link)
	return reader.end()
}

// routineLine reads routine NAME UNITS. Units are in quotes if they are not plain words; spaces or
// commas separate them.
func (reader *textReader) routineLine() error {
	name := reader.word()
	if !isObject(name) {
		return wanted(name, "a routine's name: letters, digits, . _ [ ], not after, not mbK")
	}
	routine := Routine{Name: string(name)}
	rest := bytes.TrimSpace(reader.rest)
	for len(rest) > 0 {
		unit, length, err := unitName(rest)
		if err != nil {
			return err
		}
		routine.Units = append(routine.Units, unit)
		rest = bytes.TrimLeft(rest[length:], ", \t\r")
	}
	if len(routine.Units) == 0 {
		return wanted("", "the routine's units")
	}
	reader.routine = reader.declareRoutine(routine)
	return nil
}

// unitName returns the unit that a text begins with, and its length there.
func unitName(rest []byte) (unit string, length int, err error) {
	if rest[0] == '"' {
		length = quoteLength(rest)
		if unit, err = strconv.Unquote(string(rest[:length])); err != nil || !utf8.ValidString(unit) {
			return "", 0, wanted(rest, "a unit's name in quotes")
		}
		return unit, length, nil
	}
	length = bytes.IndexAny(rest, ", \t\r")
	if length < 0 {
		length = len(rest)
	}
	if unit = string(rest[:length]); !isPlain(unit) {
		return "", 0, wanted(unit, "a unit's name, in quotes where it is no plain word")
	}
	return unit, length, nil
}

// quoteLength returns the length of the quote that the text begins with.
func quoteLength(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// isPlain reports whether a word needs no quotes: it is printable, without spaces, quotes and
// commas.
func isPlain(word string) bool {
	for i := range len(word) {
		if char := word[i]; char <= ' ' || char == '"' || char == ',' || char == '\\' || char >= 0x7f {
			return false
		}
	}
	return word != ""
}
