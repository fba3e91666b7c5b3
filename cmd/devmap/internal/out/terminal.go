package out

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// The values of --color.
const (
	Auto   = "auto"
	Always = "always"
	Never  = "never"
)

// plainWidth is the text width without a terminal, or with one of unknown width.
const plainWidth = 100

// Width returns a writer's number of columns.
func Width(writer io.Writer) int {
	if Terminal(writer) {
		if columns, _, err := term.GetSize(int(FileOf(writer).Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return plainWidth
}

// Wrap breaks a text between words into lines of at most width columns.
func Wrap(line string, width int) string {
	lines := strings.Split(text.WrapSoft(line, max(width, 1)), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// SetColour sets by the value of --color whether a stream is coloured.
func (stream *Stream) SetColour(when string) error {
	switch when {
	case Auto, Always, Never:
		stream.colour = when
		return nil
	}
	return Usagef("--color %q is unknown (known: %s, %s, %s)", when, Auto, Always, Never)
}

// SetQuiet drops tables, notes and progress of a stream: errors are still printed.
func (stream *Stream) SetQuiet() { stream.quiet = true }

// Asides returns the writer for tables and notes: the same writer, or none if it is quiet.
func Asides(writer io.Writer) io.Writer {
	if stream, ok := writer.(*Stream); ok && stream.quiet {
		return io.Discard
	}
	return writer
}

// Coloured reports whether a writer's text is coloured. That is a terminal's, unless NO_COLOR,
// TERM=dumb or --color disable it (https://no-color.org).
func Coloured(writer io.Writer) bool {
	if stream, ok := writer.(*Stream); ok {
		switch stream.colour {
		case Always:
			return true
		case Never:
			return false
		}
	}
	return Terminal(writer) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Red returns the words of a fault, in red if their stream is coloured.
func Red(writer io.Writer, words string) string {
	if !Coloured(writer) {
		return words
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", text.FgRed, words)
}

// asciiOnly replaces the signs of tables and notes by ASCII, one column each.
var asciiOnly = strings.NewReplacer(
	"─", "-", "│", "|", "┼", "+", "├", "+", "┤", "+", "┌", "+", "┐", "+", "└", "+", "┘", "+", "┬", "+", "┴", "+",
	"·", ".", "–", "-", "—", "-", "×", "x", "…", "~", "→", ">", "≤", "<", "≥", ">", "±", "~", "█", "#", "▏", "|", "°", " ",
)

// Readable returns a text for people in the characters that the locale supports.
func Readable(text string) string {
	if ascii() {
		return asciiOnly.Replace(text)
	}
	return text
}

// ascii reports a locale that supports only ASCII: C, POSIX, or one with a character set other than
// UTF-8. A locale without a character set counts as UTF-8. So does an environment without a locale,
// as in containers.
func ascii() bool {
	locale := strings.ToLower(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG")))
	_, set, named := strings.Cut(locale, ".")
	if named {
		return !strings.HasPrefix(strings.ReplaceAll(set, "-", ""), "utf8")
	}
	return locale == "c" || locale == "posix"
}
