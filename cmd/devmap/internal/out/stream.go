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

// Stream is stdout or stderr. It keeps the first write error, which cobra's help and version
// ignore. It also escapes control characters that [OneLine] has not: they become \u001b, which
// means the same inside a JSON string.
type Stream struct {
	writer io.Writer
	err    error
	part   []byte // the start of an incomplete character
	result bool   // the stream of the result
	colour string // the value of --color; empty: auto
	quiet  bool   // no tables, no notes
	wrote  bool   // something was written
}

// NewStream returns a stream to a writer.
func NewStream(writer io.Writer) *Stream { return &Stream{writer: writer} }

// NewResults returns the stream of a command's result. Once a part is written, the process does not
// end before the rest ([Leave]).
func NewResults(writer io.Writer) *Stream { return &Stream{writer: writer, result: true} }

// Write implements io.Writer.
func (stream *Stream) Write(written []byte) (int, error) {
	if stream.err != nil {
		return 0, stream.err
	}
	if stream.result {
		begin()
	}
	text := append(stream.part, written...) //nolint:gocritic // part is given up here
	stream.part = nil
	if end := wholeCharacters(text); end < len(text) {
		stream.part = append(stream.part, text[end:]...)
		text = text[:end]
	}
	stream.wrote = stream.wrote || len(text) > 0
	shown := escaped(string(text), stream.isOwnControl)
	if ascii() && Terminal(stream.writer) {
		shown = asciiOnly.Replace(shown)
	}
	_, stream.err = io.WriteString(stream.writer, shown)
	return len(written), stream.err
}

// Wrote reports that something was written.
func (stream *Stream) Wrote() bool { return stream.wrote }

// Flush writes the rest after all writes, and returns the first write error.
func (stream *Stream) Flush() error {
	if len(stream.part) > 0 && stream.err == nil {
		_, stream.err = io.WriteString(stream.writer, escaped(string(stream.part), stream.isOwnControl))
	}
	if stream.err != nil {
		return withoutName(stream.err)
	}
	return nil
}

// isOwnControl reports the control characters that devmap writes itself: line ends, the tabs of
// completion scripts, and colours on a terminal or with --color always.
func (stream *Stream) isOwnControl(char rune) bool {
	return char == '\n' || char == '\t' || char == '\x1b' && (Terminal(stream.writer) || stream.colour == Always)
}

// wholeCharacters returns the length of text without an incomplete character at its end.
func wholeCharacters(text []byte) int {
	for back := 1; back <= min(len(text), utf8.UTFMax-1); back++ {
		if char := text[len(text)-back]; utf8.RuneStart(char) {
			if !utf8.FullRune(text[len(text)-back:]) {
				return len(text) - back
			}
			break
		}
	}
	return len(text)
}

// OneLine returns a string from a file, a flag or the environment that is safe within a line. It
// cannot end the line, control the terminal or turn the reading direction.
func OneLine(text string) string { return escaped(text, func(rune) bool { return false }) }

// Block is text of several lines that devmap laid out itself, with cells made by [Cell].
type Block string

// Say prints for people. Each string, error and Stringer becomes one line, so that no file name
// forges a line; a Block is not changed.
func Say(writer io.Writer, format string, args ...any) error {
	safe := make([]any, len(args))
	for i, arg := range args {
		switch value := arg.(type) {
		case string:
			safe[i] = OneLine(value)
		case error:
			safe[i] = OneLine(value.Error())
		case fmt.Stringer:
			safe[i] = OneLine(value.String())
		default:
			safe[i] = arg
		}
	}
	_, err := fmt.Fprintf(writer, format, safe...)
	return err
}

// Cell returns a name for a table: on one line, and of limited length.
func Cell(name string) string {
	const most = 200
	return Shortened(OneLine(name), most)
}

// escaped writes unsafe characters as \u001b, and invalid UTF-8 as \xff.
func escaped(text string, keep func(rune) bool) string {
	bad := func(char rune) bool { return unsafeRune(char) && !keep(char) }
	if !strings.ContainsFunc(text, bad) && utf8.ValidString(text) {
		return text
	}
	var builder strings.Builder
	for at := 0; at < len(text); {
		char, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case char == utf8.RuneError && size == 1:
			fmt.Fprintf(&builder, `\x%02x`, text[at])
		case bad(char):
			fmt.Fprintf(&builder, `\u%04x`, char)
		default:
			builder.WriteString(text[at : at+size])
		}
		at += size
	}
	return builder.String()
}

// unsafeRune reports control characters (C0, DEL, C1), line and paragraph separators, and
// characters that turn the reading direction (Unicode's Bidi_Control). With these, a line shows
// other text than it contains.
func unsafeRune(char rune) bool {
	return unicode.IsControl(char) || unicode.In(char, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// FileOf returns the file behind a writer, nil if there is none.
func FileOf(writer io.Writer) *os.File {
	if stream, ok := writer.(*Stream); ok {
		writer = stream.writer
	}
	file, _ := writer.(*os.File)
	return file
}

// Terminal reports whether a writer is a terminal.
func Terminal(writer io.Writer) bool {
	file := FileOf(writer)
	return file != nil && term.IsTerminal(int(file.Fd()))
}
