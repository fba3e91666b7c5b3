package safetensors

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func weightMap(file string) string { return fmt.Sprintf(`{"weight_map":{"t":%q}}`, file) }

var rejectedIndexes = map[string]struct{ json, err string }{
	"absolute":         {weightMap("/etc/passwd"), `i: weight_map "t": file "/etc/passwd": absolute path`},
	"parent":           {weightMap("../x"), "not a plain relative path"},
	"parent inside":    {weightMap("a/../../b"), `file "a/../../b": not a plain relative path`},
	"backslash":        {weightMap(`..\x`), "backslash"},
	"NUL":              {`{"weight_map":{"t":"x\u0000.safetensors"}}`, "control character"},
	"empty name":       {weightMap(""), "not a plain relative path"},
	"dot":              {weightMap("."), "not a plain relative path"},
	"tensor twice":     {`{"weight_map":{"t":"a","t":"b"}}`, `i: byte 23 at "/weight_map/t": duplicate key`},
	"weight_map twice": {`{"weight_map":{"t":"a"},"weight_map":{}}`, "duplicate key"},
	"not JSON":         {`{"weight_map":`, "JSON ends early"},
	"empty":            {``, "the file is empty"},
	"array":            {`[]`, "found [, want {"},
	"no weight_map":    {`{}`, "i: weight_map is missing or empty"},
	"empty weight_map": {`{"weight_map":{}}`, "i: weight_map is missing or empty"},
	"weight_map null":  {`{"weight_map":null}`, "found null, want {"},
	"number":           {`{"weight_map":{"t":1}}`, `at "/weight_map/t": found number, want string`},
	"trailing":         {weightMap("a") + "x", "invalid character"},
	"not UTF-8":        {"{\"weight_map\":{\"t\":\"\xff\"}}", "invalid UTF-8"},
}

func TestReadIndexRejects(t *testing.T) {
	for name, c := range rejectedIndexes {
		t.Run(name, func(t *testing.T) {
			_, err := readIndex(strings.NewReader(c.json), "i")
			var syn *syntaxError
			if !errors.As(err, &syn) || !strings.Contains(err.Error(), c.err) {
				t.Errorf("error is %T %v, want a *SyntaxError with %s", err, err, c.err)
			}
		})
	}
}

func TestReadIndexAccepts(t *testing.T) {
	for _, meta := range []string{
		``, `"metadata":null,`, `"metadata":{},`, `"metadata":{"total_size":8},`, `"metadata":{"total_size":8.0,"x":[]},`,
	} {
		x, err := readIndex(strings.NewReader(`{`+meta+`"other":[1],"weight_map":{"b":"2","a":"1","c":"2"}}`), "i")
		if err != nil {
			t.Errorf("%s: %v", meta, err)
			continue
		}
		x.sortFiles()
		if fmt.Sprint(x.files, x.shard) != "[1 2] map[a:0 b:1 c:1]" {
			t.Errorf("%s: index is %v %v", meta, x.files, x.shard)
		}
		if w := x.totalSizeLie(8); w != "" {
			t.Errorf("%s: warning %s", meta, w)
		}
	}
	for lie, want := range map[string]string{
		"9": "9", "-8": "-8", "1e999": "1e999", `"8"`: "not a number", "null": "not a number", "{}": "not a number",
	} {
		x, err := readIndex(strings.NewReader(`{"metadata":{"total_size":`+lie+`},"weight_map":{"a":"1"}}`), "i")
		if err != nil || !strings.Contains(x.totalSizeLie(8), "total_size is "+want+",") {
			t.Errorf("total_size %s: %v", lie, err)
		}
	}
}

func TestReadIndexTooManyEntries(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a million entries")
	}
	var b strings.Builder
	b.WriteString(`{"weight_map":{"x":"f"`)
	for i := range maxTensors {
		fmt.Fprintf(&b, `,"%d":"f"`, i)
	}
	b.WriteString(`}}`)
	_, err := readIndex(strings.NewReader(b.String()), "i")
	if err == nil || !strings.Contains(err.Error(), "more than 250000 entries") {
		t.Errorf("error is %v", err)
	}
}
