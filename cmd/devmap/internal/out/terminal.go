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

// plainWidth is the width of a text for people that goes to no terminal, or to one
// that does not say how wide it is.
const plainWidth = 100

// Width is how many columns a writer has.
func Width(writer io.Writer) int {
	if Terminal(writer) {
		if columns, _, err := term.GetSize(int(FileOf(writer).Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return plainWidth
}

// Wrap breaks a text between words into lines of at most so many columns.
func Wrap(line string, width int) string {
	lines := strings.Split(text.WrapSoft(line, max(width, 1)), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// SetColour decides by the value of --color whether a stream is coloured.
func (stream *Stream) SetColour(when string) error {
	switch when {
	case Auto, Always, Never:
		stream.colour = when
		return nil
	}
	return Usagef("--color %q is unknown (known: %s, %s, %s)", when, Auto, Always, Never)
}

// SetQuiet keeps tables, notes and progress off a stream: errors are still printed.
func (stream *Stream) SetQuiet() { stream.quiet = true }

// Asides is where tables and notes for people go: the writer, or nowhere if it is quiet.
func Asides(writer io.Writer) io.Writer {
	if stream, ok := writer.(*Stream); ok && stream.quiet {
		return io.Discard
	}
	return writer
}

// Coloured reports whether what a writer gets is coloured: a terminal is, unless
// NO_COLOR, TERM=dumb or --color say otherwise (https://no-color.org).
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

// Red is words that mean a fault: coloured if their stream is.
func Red(writer io.Writer, words string) string {
	if !Coloured(writer) {
		return words
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", text.FgRed, words)
}

// asciiOnly are replacements of one column for the signs of tables and notes.
var asciiOnly = strings.NewReplacer(
	"─", "-", "│", "|", "┼", "+", "├", "+", "┤", "+", "┌", "+", "┐", "+", "└", "+", "┘", "+", "┬", "+", "┴", "+",
	"·", ".", "–", "-", "—", "-", "×", "x", "…", "~", "→", ">", "≤", "<", "≥", ">", "±", "~", "█", "#", "▏", "|", "°", " ",
)

// Readable is a text for people in the letters that the locale has.
func Readable(text string) string {
	if ascii() {
		return asciiOnly.Replace(text)
	}
	return text
}

// ascii reports a locale whose terminals have no other letters: C, POSIX, or one that
// names a character set other than UTF-8. One that names none is taken for UTF-8, and so
// is an environment without a locale, as containers have it.
func ascii() bool {
	locale := strings.ToLower(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG")))
	_, set, named := strings.Cut(locale, ".")
	if named {
		return !strings.HasPrefix(strings.ReplaceAll(set, "-", ""), "utf8")
	}
	return locale == "c" || locale == "posix"
}
