package executor

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/devmap-dev/devmap/modelgraph"
)

// Tokens are sequences of token ids.
type Tokens struct {
	ids []int32
	seq int64
}

// maxTokens limits the ids of a file to 1 GiB.
const maxTokens = 1 << 28

// ReadTokens reads JSON lines: for each sequence an array of its token ids. Their number is that of
// the job's sequences, and each id is in its model's vocabulary. Empty lines are skipped. It takes
// four bytes of memory an id, whatever the file contains. Errors are [*modelgraph.SyntaxError] with
// file and line.
func ReadTokens(file string, from io.Reader, job *Job) (*Tokens, error) {
	return readTokens(file, from, job.Workload.Seq, job.vocab())
}

func readTokens(file string, from io.Reader, seq, vocab int64) (*Tokens, error) {
	reader := &tokenReader{input: bufio.NewReader(from), line: 1, vocab: vocab, tokens: &Tokens{seq: seq}}
	if err := reader.read(); err != nil {
		var fault *modelgraph.SyntaxError
		if errors.As(err, &fault) {
			fault.File, fault.Place = file, fmt.Sprintf("line %d", reader.line)
			return nil, err
		}
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	if reader.tokens.count() == 0 {
		return nil, &modelgraph.SyntaxError{File: file, Place: "line 1", Msg: "it has no sequence: want a JSON array of token ids a line"}
	}
	return reader.tokens, nil
}

// count returns the number of sequences.
func (tokens *Tokens) count() int64 { return int64(len(tokens.ids)) / tokens.seq }

// sequence returns the ids of a sequence. Numbers past the last wrap around to the first.
func (tokens *Tokens) sequence(number int64) []int32 {
	at := number % tokens.count() * tokens.seq
	return tokens.ids[at : at+tokens.seq]
}

// digest differs for different ids.
func (tokens *Tokens) digest() string {
	sum := sha256.New()
	var word [4]byte
	for _, id := range tokens.ids {
		binary.LittleEndian.PutUint32(word[:], uint32(id))
		sum.Write(word[:])
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// tokenReader reads byte by byte, so that a line of any length takes no more memory than the ids
// that it may have.
type tokenReader struct {
	input  *bufio.Reader
	line   int
	vocab  int64
	tokens *Tokens
}

// read reads lines to the end of the file.
func (reader *tokenReader) read() error {
	for {
		char, err := reader.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case char == '\n':
			reader.line++
		case char == '[':
			if err := reader.sequence(); err != nil {
				return err
			}
		default:
			return reader.unexpected(char, "an array of token ids: [17, 4, …]")
		}
	}
}

// next returns the first byte that is not blank. The end of a line is not blank.
func (reader *tokenReader) next() (byte, error) {
	for {
		char, err := reader.input.ReadByte()
		if err != nil || char != ' ' && char != '\t' && char != '\r' {
			return char, err
		}
	}
}

// sequence reads the rest of a line after the bracket.
func (reader *tokenReader) sequence() error {
	var count int64
	for {
		id, empty, err := reader.id(count)
		if err != nil {
			return err
		}
		if empty {
			break
		}
		count++
		if count <= reader.tokens.seq {
			if len(reader.tokens.ids) == maxTokens {
				return reader.fault("there are more than %d ids: give a run fewer sequences", maxTokens)
			}
			reader.tokens.ids = append(reader.tokens.ids, id)
		}
		char, err := reader.next()
		if err != nil {
			return reader.ended(err)
		}
		if char == ']' {
			break
		}
		if char != ',' {
			return reader.unexpected(char, "a comma, or ] behind the last id")
		}
	}
	if count != reader.tokens.seq {
		return reader.fault("%d token ids, and a sequence has %d: want exactly as many", count, reader.tokens.seq)
	}
	char, err := reader.next()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	case char != '\n':
		return reader.unexpected(char, "the end of the line behind the array")
	}
	reader.line++
	return nil
}

// id reads a number. empty means the end of an array without numbers.
func (reader *tokenReader) id(before int64) (id int32, empty bool, err error) {
	char, err := reader.next()
	if err != nil {
		return 0, false, reader.ended(err)
	}
	if char == ']' && before == 0 {
		return 0, true, nil
	}
	sign := ""
	if char == '-' {
		sign = "-"
		if char, err = reader.input.ReadByte(); err != nil {
			return 0, false, reader.ended(err)
		}
	}
	value, err := reader.digits(char)
	if err == nil && (sign != "" || value >= reader.vocab) {
		err = reader.fault("%s%d is no token id of the model: want 0 to %d", sign, value, reader.vocab-1)
	}
	return int32(value), false, err
}

// digits reads a whole number that begins with char, up to the first byte after it.
func (reader *tokenReader) digits(char byte) (value int64, err error) {
	if char < '0' || char > '9' {
		return 0, reader.unexpected(char, "a token id")
	}
	first := char
	for count := 0; '0' <= char && char <= '9'; count++ {
		if first == '0' && count > 0 {
			return 0, reader.fault("a number that begins with 0: want a token id as JSON has it")
		}
		value = min(10*value+int64(char-'0'), 1<<40) // no vocabulary comes near
		if char, err = reader.input.ReadByte(); err != nil {
			return 0, reader.ended(err)
		}
	}
	if char == '.' || char == 'e' || char == 'E' {
		return 0, reader.fault("%d%c… is no token id: want a whole number", value, char)
	}
	return value, reader.input.UnreadByte()
}

func (reader *tokenReader) fault(format string, args ...any) error {
	return &modelgraph.SyntaxError{Msg: fmt.Sprintf(format, args...)}
}

// unexpected is the error for a wrong byte.
func (reader *tokenReader) unexpected(char byte, want string) error {
	if char == '\n' {
		return reader.fault("the line ends: want %s", want)
	}
	return reader.fault("%q: want %s", string(rune(char)), want)
}

// ended is the error for the end of the file within an array.
func (reader *tokenReader) ended(err error) error {
	if errors.Is(err, io.EOF) {
		return reader.fault("the file ends in an array of token ids")
	}
	return err
}
