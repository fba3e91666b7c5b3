package safetensors

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// scanner reads JSON token by token and words the errors. The decoder below it
// refuses duplicate keys and invalid UTF-8, and keeps one token in memory.
type scanner struct {
	file string
	base int64 // offset in the file of the first byte of JSON
	last int64 // end, in the JSON, of the token before the last one
	dec  *jsontext.Decoder
}

func newScanner(r io.Reader, file string, base int64) scanner {
	return scanner{file: file, base: base, dec: jsontext.NewDecoder(r)}
}

// at words a place: offset is from the start of the JSON.
func (s *scanner) at(offset int64, p jsontext.Pointer) string {
	where := "byte " + strconv.FormatInt(s.base+offset, 10)
	if p != "" {
		where += " at " + quote(string(p))
	}
	return where
}

// wrap words an error of the decoder.
func (s *scanner) wrap(err error) error {
	var syn *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF):
		return &syntaxError{s.file, s.at(0, ""), "no JSON value"}
	case !errors.As(err, &syn):
		return fmt.Errorf("%s: reading JSON: %w", printable(s.file), err)
	case errors.Is(err, jsontext.ErrDuplicateName):
		return &syntaxError{s.file, s.at(syn.ByteOffset, syn.JSONPointer), "duplicate key"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &syntaxError{s.file, s.at(syn.ByteOffset, syn.JSONPointer), "JSON ends early"}
	}
	return &syntaxError{s.file, s.at(syn.ByteOffset, syn.JSONPointer), syn.Err.Error()}
}

// fail reports a fault of the token just read.
func (s *scanner) fail(format string, args ...any) error {
	where := s.at(s.last, s.dec.StackPointer())
	return &syntaxError{s.file, where, fmt.Sprintf(format, args...)}
}

// expect reads one token of kind k. The token lasts until the next call.
func (s *scanner) expect(k jsontext.Kind) (jsontext.Token, error) {
	s.last = s.dec.InputOffset()
	t, err := s.dec.ReadToken()
	if err != nil {
		return t, s.wrap(err)
	}
	if t.Kind() != k {
		return t, s.fail("found %v, want %v", t.Kind(), k)
	}
	return t, nil
}

// skip passes over the next token.
func (s *scanner) skip(k jsontext.Kind) error {
	_, err := s.expect(k)
	return err
}

// more reports whether the object or array goes on. A syntax error counts as
// more: the read that follows reports it.
func (s *scanner) more() bool {
	k := s.dec.PeekKind()
	return k != jsontext.KindEndObject && k != jsontext.KindEndArray
}

func (s *scanner) str() (string, error) {
	t, err := s.expect(jsontext.KindString)
	if err != nil {
		return "", err
	}
	return t.String(), nil
}

// uint reads a JSON number written as digits only, as serde's u64 does: no
// sign, fraction or exponent.
func (s *scanner) uint() (uint64, error) {
	t, err := s.expect(jsontext.KindNumber)
	if err != nil {
		return 0, err
	}
	u, err := strconv.ParseUint(t.String(), 10, 64)
	if err != nil {
		return 0, s.fail("%s is not an integer in [0, 2^64)", clip(t.String()))
	}
	return u, nil
}

func (s *scanner) skipValue() error {
	if err := s.dec.SkipValue(); err != nil {
		return s.wrap(err)
	}
	return nil
}

// eof checks that only white space is left.
func (s *scanner) eof() error {
	s.last = s.dec.InputOffset()
	_, err := s.dec.ReadToken()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return s.wrap(err)
	}
	return s.fail("more than one JSON value")
}
