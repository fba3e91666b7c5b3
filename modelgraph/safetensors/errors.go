package safetensors

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A syntaxError is an error in the contents of a file.
type syntaxError struct {
	File string // name of the file, relative to the folder when there is one

	// The place: a tensor ("tensor \"a.b\""), an entry of the index, or a byte offset in the file
	// with a JSON pointer. The error is at that byte or right after it. Empty for the file as a
	// whole.
	Where string

	Msg string // what is wrong, with the value
}

func (err *syntaxError) Error() string {
	if err.Where == "" {
		return printable(err.File) + ": " + err.Msg
	}
	return printable(err.File) + ": " + err.Where + ": " + err.Msg
}

// A refusedError is a file or folder that this package does not read, whatever its content. It is a
// link that leaves the folder, a FIFO, or an unclear choice.
type refusedError struct {
	File string // file or folder as the caller or the index named it
	Msg  string // why, and what to do about it
}

func (err *refusedError) Error() string { return printable(err.File) + ": " + err.Msg }

// quote quotes a string from a file, on one line and at bounded length.
func quote(text string) string {
	if len(text) <= maxQuoted {
		return strconv.Quote(text)
	}
	return fmt.Sprintf("%s (%d bytes)", strconv.Quote(text[:maxQuoted]+"…"), len(text))
}

// quoteSome quotes the first names, and says how many it left out.
func quoteSome(names []string) string {
	const shown = 3
	var builder strings.Builder
	for i, name := range names {
		if i == shown {
			fmt.Fprintf(&builder, " and %d more", len(names)-shown)
			break
		}
		if i > 0 {
			builder.WriteString(", ")
		}
		builder.WriteString(quote(name))
	}
	return builder.String()
}

// printable quotes a file name only when it would garble the line.
func printable(name string) string {
	if q := quote(name); q != `"`+name+`"` {
		return q
	}
	return name
}

// joinErrors joins errs, one a line, and counts the ones past maxErrors.
func joinErrors(errs []error) error {
	if count := len(errs) - maxErrors; count > 0 {
		errs = append(errs[:maxErrors:maxErrors], fmt.Errorf("and %d more errors", count))
	}
	return errors.Join(errs...)
}

// clip is quote for a number, which needs no quotation marks.
func clip(text string) string {
	if len(text) <= maxQuoted {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", text[:maxQuoted], len(text))
}
