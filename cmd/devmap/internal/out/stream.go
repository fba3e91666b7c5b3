package out

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// Stream is stdout or stderr. It keeps the first error of writing, which
// cobra's help and version do not look at, and is the last net for what would
// steer a terminal: whatever slipped through [OneLine] is written as \u001b,
// which means the same inside a string of JSON.
type Stream struct {
	w    io.Writer
	err  error
	part []byte // the beginning of a character whose end is still to come
}

// NewStream is the stream that ends in a writer.
func NewStream(w io.Writer) *Stream { return &Stream{w: w} }

// Write implements io.Writer.
func (s *Stream) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	text := append(s.part, p...) //nolint:gocritic // part is given up here
	s.part = nil
	if end := wholeCharacters(text); end < len(text) {
		s.part = append(s.part, text[end:]...)
		text = text[:end]
	}
	_, s.err = io.WriteString(s.w, escaped(string(text), s.kept))
	return len(p), s.err
}

// Flush writes what is left, once all is written, and returns the first error
// of writing.
func (s *Stream) Flush() error {
	if len(s.part) > 0 && s.err == nil {
		_, s.err = io.WriteString(s.w, escaped(string(s.part), s.kept))
	}
	if s.err != nil {
		return withoutName(s.err)
	}
	return nil
}

// kept reports the control characters that devmap writes itself: the ends of
// lines, the tabs of completion scripts, and colours on a terminal.
func (s *Stream) kept(r rune) bool {
	return r == '\n' || r == '\t' || r == '\x1b' && Terminal(s.w)
}

// wholeCharacters is the length of p less a character that is cut off at its
// end.
func wholeCharacters(p []byte) int {
	for back := 1; back <= min(len(p), utf8.UTFMax-1); back++ {
		if c := p[len(p)-back]; utf8.RuneStart(c) {
			if !utf8.FullRune(p[len(p)-back:]) {
				return len(p) - back
			}
			break
		}
	}
	return len(p)
}

// OneLine is a string from a file, a flag or the environment as it may stand
// in a line of text: nothing in it ends the line, steers the terminal or turns
// the reading direction.
func OneLine(s string) string { return escaped(s, func(rune) bool { return false }) }

// Block is text of several lines that devmap laid out itself, each cell of it
// by [Cell].
type Block string

// Say prints for people. Strings, and what prints itself, are one line each,
// so that no name in a file forges a line; a block stays as it is.
func Say(w io.Writer, format string, args ...any) error {
	safe := make([]any, len(args))
	for i, a := range args {
		switch v := a.(type) {
		case string:
			safe[i] = OneLine(v)
		case error:
			safe[i] = OneLine(v.Error())
		case fmt.Stringer:
			safe[i] = OneLine(v.String())
		default:
			safe[i] = a
		}
	}
	_, err := fmt.Fprintf(w, format, safe...)
	return err
}

// Cell is a name in a table: on one line, and cut where nobody would read on.
func Cell(name string) string {
	const most = 200
	return Shortened(OneLine(name), most)
}

// escaped writes what is unsafe as \u001b, and bytes that are no UTF-8 as \xff.
func escaped(s string, keep func(rune) bool) string {
	bad := func(r rune) bool { return unsafeRune(r) && !keep(r) }
	if !strings.ContainsFunc(s, bad) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for at := 0; at < len(s); {
		r, size := utf8.DecodeRuneInString(s[at:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[at])
		case bad(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[at : at+size])
		}
		at += size
	}
	return b.String()
}

// unsafeRune reports control characters (C0, DEL, C1), ends of lines and
// paragraphs, and what turns the direction of text (Unicode's Bidi_Control),
// under which a line reads other than it is.
func unsafeRune(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// FileOf is the file behind a writer, nil where there is none.
func FileOf(w io.Writer) *os.File {
	if s, ok := w.(*Stream); ok {
		w = s.w
	}
	f, _ := w.(*os.File)
	return f
}

// Terminal reports whether a writer is one.
func Terminal(w io.Writer) bool {
	f := FileOf(w)
	return f != nil && term.IsTerminal(int(f.Fd()))
}
