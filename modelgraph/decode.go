package modelgraph

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph/internal/filekind"
)

// DecodeJSON reads one strict JSON value into v: no duplicate keys, no bad
// UTF-8, nothing after the value; unknown fields are refused where strict is
// set (our own formats). Faults are [*SyntaxError] with the file, the place
// and the value.
func DecodeJSON(file string, data []byte, v any, strict bool) error {
	err := json.Unmarshal(data, v, json.RejectUnknownMembers(strict))
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
		return &SyntaxError{File: file, Place: place(data, syn.ByteOffset, syn.JSONPointer), Msg: strings.TrimPrefix(syn.Err.Error(), "jsontext: ")}
	}
	var sem *json.SemanticError
	if errors.As(err, &sem) {
		return &SyntaxError{File: file, Place: place(data, sem.ByteOffset, sem.JSONPointer), Msg: semanticText(sem)}
	}
	return &SyntaxError{File: file, Msg: err.Error()}
}

func semanticText(e *json.SemanticError) string {
	if errors.Is(e.Err, json.ErrUnknownName) {
		return fmt.Sprintf("unknown field %q", shorten(e.JSONPointer.LastToken()))
	}
	value := e.JSONValue.Clone()
	if len(value) > 0 && value.Compact() != nil {
		value = nil
	}
	text := shorten(string(value))
	switch {
	case e.Err != nil:
		return strings.TrimPrefix(text+": "+e.Err.Error(), ": ")
	case e.GoType != nil:
		return strings.Join(strings.Fields(fmt.Sprintf("cannot read %s %s as %s", kindName(e.JSONKind), text, typeName(e.GoType))), " ")
	}
	return e.Error()
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '[':
		return "array"
	case '{':
		return "object"
	default:
		return k.String()
	}
}

// typeName is what JSON calls a Go type of ours.
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

// place renders a JSON pointer as layers[3].inputs[0] with line and column.
func place(data []byte, offset int64, ptr jsontext.Pointer) string {
	var b strings.Builder
	for tok := range ptr.Tokens() {
		if tok != "" && strings.Trim(tok, "0123456789") == "" {
			fmt.Fprintf(&b, "[%s]", tok)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(printable(shorten(tok)))
	}
	before := data[:min(int(offset), len(data))]
	line := 1 + bytes.Count(before, []byte("\n"))
	col := len(before) - (bytes.LastIndexByte(before, '\n') + 1) + 1
	pos := fmt.Sprintf("line %d, column %d", line, col)
	if b.Len() == 0 {
		return pos
	}
	return fmt.Sprintf("%s (%s)", middle(b.String()), pos)
}

// middle leaves out the middle of a long path: JSON may be nested 10,000 deep.
func middle(path string) string {
	const most = 240
	if len(path) <= most {
		return path
	}
	return strings.ToValidUTF8(path[:most/2], "") + "…" + strings.ToValidUTF8(path[len(path)-most/2:], "")
}

// printable quotes a key that would break an error's one line.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

func shorten(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
