package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// file builds a file from a header and the length of its data.
func file(header string, data int) string {
	n := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return string(n) + header + strings.Repeat("\x00", data)
}

// one is a header of one tensor.
func one(dtype, shape, offsets string) string {
	return fmt.Sprintf(`{"t":{"dtype":%q,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
}

func tenOnTheSameBytes() string {
	var b strings.Builder
	for i := range 10 {
		fmt.Fprintf(&b, `,"weight_%d":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}`, i)
	}
	return "{" + b.String()[1:] + "}"
}

// rejected are the tests of tensor.rs that end in an error, then our own.
var rejected = map[string]struct{ file, err string }{
	"empty":              {"", "f: byte 0: file of 0 bytes is too short for the 8-byte header length"},
	"7 bytes":            {"\x02\x00\x00\x00\x00\x00\x00", "too short"},
	"header too large":   {"<\x00\x00\x00\x00\xff\xff\xff" + file("{}", 0), "header length 18446742974197923900: the format allows 100000000 bytes"},
	"one too large":      {"\x01\xe1\xf5\x05\x00\x00\x00\x00{}", "header length 100000001: the format allows"},
	"beyond the file":    {"<\x00\x00\x00\x00\x00\x00\x00", "header length 60: only 0 bytes follow"},
	"Git LFS pointer":    {"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"},
	"empty header":       {file("", 0), "f: byte 8: no JSON value"},
	"spaces only":        {file("    ", 0), "no JSON value"},
	"not UTF-8":          {file("\xff", 0), "byte 8: invalid character '\\xff' at start of value"},
	"not UTF-8 name":     {file("{\"\xff\":1}", 0), "invalid UTF-8"},
	"lone surrogate":     {file(`{"\ud800":1}`, 0), "surrogate"},
	"not JSON":           {file("{", 0), "JSON ends early"},
	"array":              {file("[]", 0), "f: byte 8: found [, want {"},
	"two values":         {file("{}{}", 0), "byte 10: more than one JSON value"},
	"NUL padding":        {file("{}\x00", 0), "invalid character"},
	"BOM":                {file("\ufeff{}", 0), "invalid character"},
	"ten on the same":    {file(tenOnTheSameBytes(), 16), `f: tensor "weight_1": data_offsets [0 16]: overlap: the tensors up to this one take more than the 16 bytes of data`},
	"overlap":            {file(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}}`, 8), `tensor "b": data_offsets [2 6]: overlaps "a", which ends at 4`},
	"hole":               {file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, 3), `tensor "b": data_offsets [2 3]: hole after "a", which ends at 1`},
	"first not at 0":     {file(one("U8", "[1]", "[1,2]"), 2), "first tensor does not begin at 0"},
	"empty in a hole":    {file(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}}`, 1), "does not begin at 0"},
	"end before begin":   {file(one("I32", "[2,2]", "[16,8]"), 16), `f: tensor "t": data_offsets [16 8]: end before begin`},
	"polyglot":           {file(one("I32", "[2,2]", "[0,16]"), 16) + "extra_bogus_data_for_polyglot_file", "f: byte 81: 34 bytes after the last tensor"},
	"2 bytes missing":    {file(one("I32", "[2,2]", "[0,16]"), 14), "data_offsets [0 16]: the file holds 14 bytes of data"},
	"data, no tensor":    {file("{}", 1), "1 bytes after the last tensor"},
	"wrong size":         {file(one("I32", "[2,2]", "[0,4]"), 4), "data_offsets [0 4]: 4 bytes, but I32[2 2] takes 16"},
	"overflow of count":  {file(one("I32", "[2,18446744073709551614]", "[0,16]"), 16), "dimension 18446744073709551614 overflows"},
	"overflow of count2": {file(one("I32", "[9223372036854775807,9223372036854775807,0]", "[0,0]"), 0), "element count overflows"},
	"overflow of bits":   {file(one("I32", "[2,9223372036854775807]", "[0,16]"), 16), "I32[2 9223372036854775807]: size in bits overflows"},
	"F4 misaligned":      {file(one("F4", "[3]", "[0,2]"), 2), "F4[3]: size is not a whole number of bytes"},
	"F6 misaligned":      {file(one("F6_E2M3", "[2]", "[0,2]"), 2), "not a whole number of bytes"},
	"unknown dtype":      {file(one("F7", "[1]", "[0,1]"), 1), `tensor "t": unknown dtype "F7"`},
	"PyTorch dtype":      {file(one("float32", "[1]", "[0,4]"), 4), `unknown dtype "float32"`},
	"metadata number":    {file(`{"__metadata__":{"a":1}}`, 0), `at "/__metadata__/a": found number, want string`},
	"metadata list":      {file(`{"__metadata__":[]}`, 0), `at "/__metadata__": found [, want {`},
	"metadata twice":     {file(`{"__metadata__":{},"__metadata__":{}}`, 0), `at "/__metadata__": duplicate key`},
	"metadata key twice": {file(`{"__metadata__":{"a":"","a":""}}`, 0), `at "/__metadata__/a": duplicate key`},
	"tensor twice":       {file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1), `f: byte 61 at "/a": duplicate key`},
	"escaped twice":      {file(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"\u0061":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0), "duplicate key"},
	"field twice":        {file(`{"a":{"dtype":"U8","dtype":"F32","shape":[1],"data_offsets":[0,1]}}`, 1), `at "/a/dtype": duplicate key`},
	"negative offset":    {file(one("U8", "[1]", "[-1,0]"), 1), `at "/t/data_offsets/0": -1 is not an integer`},
	"minus zero":         {file(one("U8", "[1]", "[-0,1]"), 1), "-0 is not an integer"},
	"float offset":       {file(one("U8", "[1]", "[0,1.0]"), 1), "1.0 is not an integer"},
	"exponent offset":    {file(one("U8", "[1000]", "[0,1e3]"), 1000), `at "/t/data_offsets/1": 1e3 is not an integer`},
	"offset over 2^64":   {file(one("U8", "[1]", "[0,18446744073709551616]"), 1), "is not an integer"},
	"offset at 2^64-1":   {file(one("U8", "[1]", "[0,18446744073709551615]"), 1), "the file holds 1 bytes"},
	"string offset":      {file(one("U8", "[1]", `["0",1]`), 1), "found string, want number"},
	"one offset":         {file(one("U8", "[1]", "[0]"), 1), "found ], want number"},
	"three offsets":      {file(one("U8", "[1]", "[0,1,2]"), 1), "found number, want ]"},
	"negative dimension": {file(one("U8", "[-1]", "[0,1]"), 1), "-1 is not an integer"},
	"shape null":         {file(one("U8", "null", "[0,1]"), 1), "found null, want ["},
	"rank 65":            {file(one("U8", "[1"+strings.Repeat(",1", 64)+"]", "[0,1]"), 1), "more than 64 dimensions"},
	"no dtype":           {file(`{"t":{"shape":[],"data_offsets":[0,1]}}`, 1), "dtype is missing"},
	"no shape":           {file(`{"t":{"dtype":"U8","data_offsets":[0,1]}}`, 1), "shape is missing"},
	"no offsets":         {file(`{"t":{"dtype":"U8","shape":[]}}`, 1), "data_offsets is missing"},
	"tensor null":        {file(`{"t":null}`, 0), "found null, want {"},
	"line break in name": {file("{\"a\\nb\":{}}", 0), `tensor "a\nb": dtype is missing`},
}

func TestReadHeaderRejects(t *testing.T) {
	for name, c := range rejected {
		t.Run(name, func(t *testing.T) {
			_, err := readHeader(strings.NewReader(c.file), int64(len(c.file)), "f")
			var syn *syntaxError
			if !errors.As(err, &syn) {
				t.Fatalf("error is %T %v, want a *SyntaxError", err, err)
			}
			if msg := err.Error(); !strings.Contains(msg, c.err) || strings.Contains(msg, "\n") {
				t.Errorf("error is\n%s\nwant one line with\n%s", msg, c.err)
			}
		})
	}
}

// accepted are headers that tensor.rs takes, with the bytes of each tensor.
var accepted = map[string]struct {
	file string
	want map[string]int64
}{
	"no tensors":        {file("{}", 0), nil},
	"trailing spaces":   {file("{}\r \t\n", 0), nil},
	"leading spaces":    {file("\t\n{}\r ", 0), nil},
	"one":               {file(one("I32", "[2,2]", "[0,16]"), 16), map[string]int64{"t": 16}},
	"rank 0":            {file(one("I32", "[]", "[0,4]"), 4), map[string]int64{"t": 4}},
	"zero size":         {file(one("I32", "[2,0]", "[0, 0]"), 0), map[string]int64{"t": 0}},
	"zero size, large":  {file(one("I32", "[9223372036854775807,0]", "[0,0]"), 0), map[string]int64{"t": 0}},
	"empty at each end": {file(`{"z":{"dtype":"U8","shape":[0],"data_offsets":[2,2]},"m":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 2), map[string]int64{"a": 0, "m": 2, "z": 0}},
	"F4":                {file(one("F4", "[2,3]", "[0,3]"), 3), map[string]int64{"t": 3}},
	"F6":                {file(one("F6_E3M2", "[4]", "[0,3]"), 3), map[string]int64{"t": 3}},
	"empty name":        {file(`{"":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}`, 1), map[string]int64{"": 1}},
	"metadata null":     {file(`{"__metadata__":null}`, 0), nil},
	"metadata":          {file(`{"__metadata__":{"format":"pt"}}`, 0), nil},
	"unknown field":     {file(`{"t":{"x":{"y":[1e3]},"data_offsets":[0,1],"shape":[],"dtype":"U8"}}`, 1), map[string]int64{"t": 1}},
	"escaped field":     {file(`{"t":{"\u0064type":"U8","shape":[],"data_offsets":[0,1]}}`, 1), map[string]int64{"t": 1}},
}

func TestReadHeaderAccepts(t *testing.T) {
	for name, c := range accepted {
		t.Run(name, func(t *testing.T) {
			h := fixtures.Must(readHeader(strings.NewReader(c.file), int64(len(c.file)), "f"))(t)
			got := map[string]int64{}
			for _, x := range h.Tensors {
				got[x.Name] = x.Bytes()
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("tensors are %v, want %v", got, c.want)
			}
			checkTiles(t, h, []byte(c.file))
		})
	}
}

// checkTiles is the promise of readHeader.
func checkTiles(t *testing.T, h *fileHeader, file []byte) {
	t.Helper()
	next := 8 + int64(binary.LittleEndian.Uint64(file))
	for _, x := range h.Tensors {
		if x.Begin != next || x.End < x.Begin {
			t.Errorf("tensor %q is at [%d %d), want it at %d", x.Name, x.Begin, x.End, next)
		}
		next = x.End
	}
	if next != int64(len(file)) {
		t.Errorf("tensors end at %d of %d", next, len(file))
	}
}

func TestEveryDType(t *testing.T) {
	for d := modelgraph.DType(1); d.Bits() > 0; d++ {
		f := file(one(d.String(), "[8]", fmt.Sprintf("[0,%d]", d.Bits())), int(d.Bits()))
		h, err := readHeader(strings.NewReader(f), int64(len(f)), "f")
		if err != nil || h.Tensors[0].DType != d {
			t.Errorf("%v: %v", d, err)
		}
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	f := file(`{"__metadata__":{"format":"pt"},"t":{"dtype":"BF16","shape":[3,5],"data_offsets":[0,30]}}`, 30)
	if err := os.WriteFile(path, []byte(f), 0o644); err != nil {
		t.Fatal(err)
	}
	h := fixtures.Must(ReadFile(path))(t)
	if len(h.Tensors) != 1 {
		t.Fatalf("%d tensors", len(h.Tensors))
	}
	x := h.Tensors[0]
	if x.Name != "t" || x.DType != modelgraph.BF16 || !slices.Equal(x.Shape, []int64{3, 5}) || x.End != int64(len(f)) {
		t.Errorf("tensor is %+v", x)
	}
	if h.Dir != dir || !slices.Equal(h.Files, []string{"x"}) {
		t.Errorf("files are %v in %q", h.Files, h.Dir)
	}
	header, err := readHeader(strings.NewReader(f), int64(len(f)), "x")
	if err != nil || header.Metadata["format"] != "pt" {
		t.Errorf("metadata of %+v (%v)", header, err)
	}
	var refused *refusedError
	if _, err := ReadFile(dir); !errors.As(err, &refused) {
		t.Errorf("a directory gives %v", err)
	}
	if _, err := ReadFile(path + "y"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
}

// A file cut short while it is read, and a disk that fails.
func TestReadHeaderShortReader(t *testing.T) {
	f := file(one("U8", "[1]", "[0,1]"), 1)
	for n := range len(f) - 1 {
		if _, err := readHeader(strings.NewReader(f[:n]), int64(len(f)), "f"); err == nil {
			t.Errorf("no error when %d of %d bytes can be read", n, len(f))
		}
	}
	bad := errors.New("bad sector")
	r := io.NewSectionReader(failAt{strings.NewReader(f), 20, bad}, 0, int64(len(f)))
	if _, err := readHeader(r, int64(len(f)), "f"); !errors.Is(err, bad) {
		t.Errorf("error is %v, want the reader's", err)
	}
}

type failAt struct {
	io.ReaderAt
	limit int64
	err   error
}

func (f failAt) ReadAt(b []byte, off int64) (int, error) {
	if off+int64(len(b)) > f.limit {
		return 0, f.err
	}
	return f.ReaderAt.ReadAt(b, off)
}

// An error shows at most a line of a hostile name.
func TestLongNameInError(t *testing.T) {
	f := file(`{"`+strings.Repeat("n", 1<<20)+`":{"dtype":"`+strings.Repeat("d", 1<<20)+`"}}`, 0)
	_, err := readHeader(strings.NewReader(f), int64(len(f)), strings.Repeat("f", 1<<20))
	if err == nil || len(err.Error()) > 600 {
		t.Errorf("error has %d bytes", len(fmt.Sprint(err)))
	}
}

// The attacks of safetensors' attacks folder, many tensors on the same bytes,
// and many empty ones, which the format allows.
func TestHostileHeaders(t *testing.T) {
	for _, c := range []struct {
		name, open, entry, end string
		entries                int
		err                    string
	}{
		{"same bytes", `{"x":{"dtype":"U8","shape":[],"data_offsets":[0,1]}`, `,"w%d":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}`, `}`, 100_000, `tensor "w0": data_offsets [0 16]: overlap`},
		{"metadata", `{"__metadata__":{"x":""`, `,"w%d":""`, `}}`, maxMetadata, "more than 100000 entries"},
		{"empty", `{"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`, `,"w%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`, `}`, maxTensors, "more than 250000 tensors"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && c.entries == maxTensors {
				t.Skip("reads a million entries")
			}
			b := []byte(c.open)
			for i := range c.entries {
				b = fmt.Appendf(b, c.entry, i)
			}
			f := file(string(b)+c.end, 16)
			_, err := readHeader(strings.NewReader(f), int64(len(f)), "f")
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("error is %v, want %q", err, c.err)
			}
		})
	}
}
