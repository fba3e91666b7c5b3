// Package spell writes names and values into messages on one line, and reads those that Python
// spells in its own way.
package spell

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph"
)

// NonFinite are the bare words of Python's json module for non-finite numbers, longest first.
var NonFinite = []string{"-Infinity", "Infinity", "NaN"}

// JSON quotes those words, which makes the file JSON. A getter of a number refuses them with
// a message; other getters ignore them.
func JSON(data []byte) []byte {
	var out []byte
	inString, done := false, 0
	for i := 0; i < len(data); i++ {
		switch ch := data[i]; {
		case inString && ch == '\\':
			i++
		case ch == '"':
			inString = !inString
		case !inString && (ch == 'N' || ch == 'I' || ch == '-'):
			if word := bareWord(data[i:]); word != "" {
				out = append(append(out, data[done:i]...), `"`+word+`"`...)
				i += len(word) - 1
				done = i + 1
			}
		}
	}
	if done == 0 {
		return data
	}
	return append(out, data[done:]...)
}

func bareWord(data []byte) string {
	for _, word := range NonFinite {
		if bytes.HasPrefix(data, []byte(word)) {
			return word
		}
	}
	return ""
}

// Short is a value as an error quotes it; the words of [JSON] are bare again.
func Short(v jsontext.Value) string {
	if v = v.Clone(); v.Compact() != nil { // one line
		return "the value"
	}
	if len(v) > 60 {
		return onOneLine(strings.ToValidUTF8(string(v[:60]), "")) + "…"
	}
	for _, word := range NonFinite {
		if string(v) == `"`+word+`"` {
			return word
		}
	}
	return onOneLine(string(v))
}

// onOneLine quotes text that a terminal would not print unchanged.
func onOneLine(text string) string {
	if strings.ContainsFunc(text, func(char rune) bool { return !unicode.IsPrint(char) }) {
		return strconv.Quote(text)
	}
	return text
}

// WayOut is the advice if a config alone does not give the model.
const WayOut = "give the folder with its safetensors files, or export it with devmap.export as a model.json"

// Plain is a field's name in an error: short, on one line.
func Plain(name string) string {
	return onOneLine(Clip(name))
}

// Clip is a name for a message: its first 120 bytes.
func Clip(text string) string {
	if len(text) > 120 {
		return text[:120] + "…"
	}
	return text
}

// DType is the type of a name in the source.
func DType(name string) modelgraph.DType {
	dtype, err := modelgraph.ParseDType(name)
	if err != nil {
		panic(err)
	}
	return dtype
}
