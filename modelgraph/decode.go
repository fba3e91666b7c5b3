package modelgraph

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph/internal/filekind"
)

// DecodeJSON reads one JSON value, strictly: no duplicate keys, no bad UTF-8, nothing after the
// value. If strict is set, for our own formats, unknown fields are errors too. Errors are
// [*SyntaxError] with the file, the place and the value.
func DecodeJSON(file string, data []byte, value any, strict bool) error {
	err := json.Unmarshal(data, value, json.RejectUnknownMembers(strict))
	if err == nil {
		return nil
	}
	if what := filekind.NotText(data); what != "" {
		return &SyntaxError{File: file, Msg: what}
	}
	var own *SyntaxError
	if errors.As(err, &own) && own.File != "" {
		return own
	}
	var syn *jsontext.SyntacticError
	if errors.As(err, &syn) {
		if errors.Is(syn.Err, io.ErrUnexpectedEOF) {
			return &SyntaxError{File: file, Place: placeOf(data, syn.ByteOffset, syn.JSONPointer), Msg: "the file is cut off: unexpected EOF"}
		}
		return &SyntaxError{File: file, Place: placeOf(data, syn.ByteOffset, syn.JSONPointer), Msg: strings.TrimPrefix(syn.Err.Error(), "jsontext: ")}
	}
	var sem *json.SemanticError
	if errors.As(err, &sem) {
		return &SyntaxError{File: file, Place: placeOf(data, sem.ByteOffset, sem.JSONPointer), Msg: semanticText(sem)}
	}
	return &SyntaxError{File: file, Msg: err.Error()}
}

func semanticText(err *json.SemanticError) string {
	if errors.Is(err.Err, json.ErrUnknownName) {
		return fmt.Sprintf("unknown field %q", shorten(err.JSONPointer.LastToken()))
	}
	value := err.JSONValue.Clone()
	if len(value) > 0 && value.Compact() != nil {
		value = nil
	}
	text := shorten(string(value))
	switch {
	case err.Err != nil:
		return strings.TrimPrefix(text+": "+err.Err.Error(), ": ")
	case err.GoType != nil:
		return strings.Join(strings.Fields(fmt.Sprintf("cannot read %s %s as %s", kindName(err.JSONKind), text, typeName(err.GoType))), " ")
	}
	return err.Error()
}

func kindName(kind jsontext.Kind) string {
	switch kind {
	case '[':
		return "array"
	case '{':
		return "object"
	default:
		return kind.String()
	}
}

// typeName returns the JSON name of a Go type.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Slice, reflect.Array:
		return "array"
	default:
		return t.Kind().String()
	}
}

// placeOf returns a JSON pointer as layers[3].inputs[0] with line and column.
func placeOf(data []byte, offset int64, ptr jsontext.Pointer) string {
	var builder strings.Builder
	for tok := range ptr.Tokens() {
		if tok != "" && strings.Trim(tok, "0123456789") == "" {
			fmt.Fprintf(&builder, "[%s]", tok)
			continue
		}
		if builder.Len() > 0 {
			builder.WriteByte('.')
		}
		builder.WriteString(printable(shorten(tok)))
	}
	before := data[:min(int(offset), len(data))]
	line := 1 + bytes.Count(before, []byte("\n"))
	col := len(before) - (bytes.LastIndexByte(before, '\n') + 1) + 1
	pos := fmt.Sprintf("line %d, column %d", line, col)
	if builder.Len() == 0 {
		return pos
	}
	return fmt.Sprintf("%s (%s)", middle(builder.String()), pos)
}

// middle leaves out the middle of a long path: JSON may be nested 10,000 deep.
func middle(path string) string {
	const maxBytes = 240
	if len(path) <= maxBytes {
		return path
	}
	return strings.ToValidUTF8(path[:maxBytes/2], "") + "…" + strings.ToValidUTF8(path[len(path)-maxBytes/2:], "")
}

// printable quotes a key that would break an error's one line.
func printable(text string) string {
	if strings.ContainsFunc(text, func(char rune) bool { return !unicode.IsPrint(char) }) {
		return strconv.Quote(text)
	}
	return text
}

func shorten(text string) string {
	const maxBytes = 80
	if len(text) <= maxBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxBytes], "") + "…"
}
