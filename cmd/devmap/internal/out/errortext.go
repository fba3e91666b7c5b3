package out

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// These limits bound an error on screen. A message may quote a name or a value of a hostile file,
// megabytes long.
const (
	MaxLine  = 1500 // bytes
	maxLines = 25
)

// errorText returns an error for people; say formats errors. Each fault is one line, as in
// [errors.Join], of limited length and without line breaks.
func errorText(err error, say func(error) string) string {
	lines := faultLines(err, say)
	if more := len(lines) - maxLines; more > 0 {
		lines = append(lines[:maxLines:maxLines], fmt.Sprintf("and %d more faults", more))
	}
	for i := range lines {
		lines[i] = Shortened(OneLine(lines[i]), MaxLine)
	}
	return strings.Join(lines, "\n")
}

// faultLines splits a joined error. The text of a wrapping error stays with the first and the last
// line.
func faultLines(err error, say func(error) string) []string {
	text := strings.TrimSpace(say(err))
	for inner := err; inner != nil; {
		switch e := inner.(type) { //nolint:errorlint // one step of the chain at a time
		case interface{ Unwrap() []error }:
			before, after, found := strings.Cut(text, strings.TrimSpace(say(inner)))
			if !found || len(e.Unwrap()) == 0 || !strings.Contains(say(inner), "\n") {
				return []string{text}
			}
			var lines []string
			for _, part := range e.Unwrap() {
				lines = append(lines, faultLines(part, say)...)
			}
			lines[0] = before + lines[0]
			lines[len(lines)-1] += after
			return lines
		case interface{ Unwrap() error }:
			inner = e.Unwrap()
		default:
			return []string{text}
		}
	}
	return []string{text}
}

// Shortened keeps the start and the end of a long text: an error names the place first and the fix
// last.
func Shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	head, tail := text[:most*2/3], text[len(text)-most/3:]
	for !utf8.ValidString(head) {
		head = head[:len(head)-1]
	}
	for !utf8.ValidString(tail) {
		tail = tail[1:]
	}
	return fmt.Sprintf("%s… (%d bytes left out) …%s", head, len(text)-len(head)-len(tail), tail)
}
