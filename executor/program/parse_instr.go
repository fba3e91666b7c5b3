package program

import (
	"bytes"
	"errors"
	"strings"
)

// instruction reads a line that begins with a digit: D.N STREAM OP [ROUTINE]
// [mbK] [CH#SEQ] BUFFERS… [after STREAM:D.N …].
func (reader *textReader) instruction(line []byte) error {
	if len(line) == 0 || line[0] < '0' || line[0] > '9' {
		return nil
	}
	reader.rest = line
	device, number, err := place(reader.word())
	if err != nil {
		return err
	}
	stream := reader.word()
	if !isName(stream) {
		return wanted(stream, "a stream")
	}
	op, err := operation(reader.word())
	if err != nil {
		return err
	}
	if err := reader.begin(device, number, stream, op); err != nil {
		return err
	}
	word, err := reader.subject(op, reader.word())
	if err != nil {
		return err
	}
	if err := reader.buffers(word); err != nil {
		return err
	}
	return nil
}

// place reads D.N.
func place(word []byte) (device, instr int32, err error) {
	before, after, _ := bytes.Cut(word, []byte("."))
	device, err = index(before)
	if err == nil {
		instr, err = index(after)
	}
	if err != nil {
		return 0, 0, wanted(word, "DEVICE.NUMBER")
	}
	return device, instr, nil
}

func operation(word []byte) (Op, error) {
	op, ok := ops[string(word)]
	if !ok {
		return 0, wanted(word, "an operation: "+strings.Join(opNames[:], ", "))
	}
	return op, nil
}

// subject reads the words before the buffers, beginning with the given word. It returns the word
// after them.
func (reader *textReader) subject(op Op, word []byte) ([]byte, error) {
	if op.Runs() && isObject(word) {
		reader.runs(word)
		word = reader.word()
	}
	if isMicroBatch(word) {
		batch, err := index(word[2:])
		if err != nil {
			return nil, wanted(word, "a micro-batch")
		}
		instr, _ := reader.last()
		instr.MicroBatch = batch
		word = reader.word()
	}
	if channel, sequence, ok := bytes.Cut(word, []byte("#")); ok {
		number, err := index(sequence)
		if err != nil || !isChannel(channel) {
			return nil, wanted(word, "CHANNEL#SEQUENCE")
		}
		reader.message(channel, number)
		word = reader.word()
	}
	return word, nil
}

// buffers reads the buffers and waits, beginning with the given word.
func (reader *textReader) buffers(word []byte) error {
	for ; len(word) > 0; word = reader.word() {
		if string(word) == "after" {
			return reader.waitList()
		}
		name, mode := access(word)
		if !isObject(name) {
			return wanted(word, "a buffer (NAME, >NAME or +NAME), or after and what is waited for; a routine, mbK and CHANNEL#SEQUENCE stand before")
		}
		reader.touches(name, mode)
	}
	return nil
}

// access returns a buffer's name, and the mode of the access.
func access(word []byte) ([]byte, Mode) {
	switch {
	case len(word) == 0:
		return word, Read
	case word[0] == '>':
		return word[1:], Write
	case word[0] == '+':
		return word[1:], Accumulate
	}
	return word, Read
}

// waitList reads waits STREAM:D.N up to the end of the line.
func (reader *textReader) waitList() error {
	word := reader.word()
	if len(word) == 0 {
		return errors.New("the line ends behind after: want STREAM:DEVICE.NUMBER")
	}
	for ; len(word) > 0; word = reader.word() {
		if err := reader.wait(word); err != nil {
			return err
		}
	}
	return nil
}

func (build *builder) wait(word []byte) error {
	stream, at, _ := bytes.Cut(word, []byte(":"))
	device, number, err := place(at)
	if err != nil || !isName(stream) {
		return wanted(word, "STREAM:DEVICE.NUMBER")
	}
	build.waitsFor(stream, device, number)
	return nil
}
