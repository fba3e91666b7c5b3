package safetensors

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// scanner reads JSON token by token and writes the errors. Its decoder refuses duplicate keys and
// invalid UTF-8, and keeps one token in memory.
type scanner struct {
	file string
	base int64 // offset in the file of the first byte of JSON
	last int64 // end, in the JSON, of the token before the last one
	dec  *jsontext.Decoder
}

func newScanner(reader io.Reader, file string, base int64) scanner {
	return scanner{file: file, base: base, dec: jsontext.NewDecoder(reader)}
}

// at describes a place. offset is from the start of the JSON.
func (scan *scanner) at(offset int64, pointer jsontext.Pointer) string {
	where := "byte " + strconv.FormatInt(scan.base+offset, 10)
	if pointer != "" {
		where += " at " + quote(string(pointer))
	}
	return where
}

// wrap describes an error of the decoder.
func (scan *scanner) wrap(err error) error {
	var syn *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF):
		return &syntaxError{scan.file, scan.at(0, ""), "no JSON value"}
	case !errors.As(err, &syn):
		return fmt.Errorf("%s: reading JSON: %w", printable(scan.file), err)
	case errors.Is(err, jsontext.ErrDuplicateName):
		return &syntaxError{scan.file, scan.at(syn.ByteOffset, syn.JSONPointer), "duplicate key"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &syntaxError{scan.file, scan.at(syn.ByteOffset, syn.JSONPointer), "JSON ends early"}
	}
	return &syntaxError{scan.file, scan.at(syn.ByteOffset, syn.JSONPointer), syn.Err.Error()}
}

// fail returns an error about the token just read.
func (scan *scanner) fail(format string, args ...any) error {
	where := scan.at(scan.last, scan.dec.StackPointer())
	return &syntaxError{scan.file, where, fmt.Sprintf(format, args...)}
}

// expect reads one token of that kind. The token is valid until the next call.
func (scan *scanner) expect(kind jsontext.Kind) (jsontext.Token, error) {
	scan.last = scan.dec.InputOffset()
	token, err := scan.dec.ReadToken()
	if err != nil {
		return token, scan.wrap(err)
	}
	if token.Kind() != kind {
		return token, scan.fail("found %v, want %v", token.Kind(), kind)
	}
	return token, nil
}

// skip skips the next token.
func (scan *scanner) skip(kind jsontext.Kind) error {
	_, err := scan.expect(kind)
	return err
}

// more reports whether the object or array continues. A syntax error counts as
// more: the read that follows reports it.
func (scan *scanner) more() bool {
	kind := scan.dec.PeekKind()
	return kind != jsontext.KindEndObject && kind != jsontext.KindEndArray
}

func (scan *scanner) str() (string, error) {
	token, err := scan.expect(jsontext.KindString)
	if err != nil {
		return "", err
	}
	return token.String(), nil
}

// uint reads a JSON number of digits only, like serde's u64: no sign, fraction or exponent.
func (scan *scanner) uint() (uint64, error) {
	token, err := scan.expect(jsontext.KindNumber)
	if err != nil {
		return 0, err
	}
	u, err := strconv.ParseUint(token.String(), 10, 64)
	if err != nil {
		return 0, scan.fail("%s is not an integer in [0, 2^64)", clip(token.String()))
	}
	return u, nil
}

func (scan *scanner) skipValue() error {
	if err := scan.dec.SkipValue(); err != nil {
		return scan.wrap(err)
	}
	return nil
}

// eof checks that only white space remains.
func (scan *scanner) eof() error {
	scan.last = scan.dec.InputOffset()
	_, err := scan.dec.ReadToken()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return scan.wrap(err)
	}
	return scan.fail("more than one JSON value")
}

// members reads an object. It calls read after each name, to read the value.
func (scan *scanner) members(read func(name string) error) error {
	if err := scan.skip(jsontext.KindBeginObject); err != nil {
		return err
	}
	for scan.more() {
		name, err := scan.str()
		if err != nil {
			return err
		}
		if err := read(name); err != nil {
			return err
		}
	}
	return scan.skip(jsontext.KindEndObject)
}
