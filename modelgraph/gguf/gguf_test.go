package gguf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
)

// sizes are those of gguf-py 0.19 (constants.py, GGML_QUANT_SIZES), and of ggml 0.25.3 for types 9
// and 42 (ggml.c, type_traits).
var sizes = []struct {
	number          uint32
	elements, bytes int64
}{
	{0, 1, 4},
	{1, 1, 2},
	{2, 32, 18},
	{3, 32, 20},
	{6, 32, 22},
	{7, 32, 24},
	{8, 32, 34},
	{9, 32, 36},
	{10, 256, 84},
	{11, 256, 110},
	{12, 256, 144},
	{13, 256, 176},
	{14, 256, 210},
	{15, 256, 292},
	{16, 256, 66},
	{17, 256, 74},
	{18, 256, 98},
	{19, 256, 50},
	{20, 32, 18},
	{21, 256, 110},
	{22, 256, 82},
	{23, 256, 136},
	{24, 1, 1},
	{25, 1, 2},
	{26, 1, 4},
	{27, 1, 8},
	{28, 1, 8},
	{29, 256, 56},
	{30, 1, 2},
	{34, 256, 54},
	{35, 256, 66},
	{39, 32, 17},
	{40, 64, 36},
	{41, 128, 18},
	{42, 64, 18},
}

// TestTypes: a tensor of each type has ggml's size, and there are no other types.
func TestTypes(t *testing.T) {
	for _, row := range sizes {
		file := llama().tensor("other.weight", row.number, 512, 3)
		read, err := Read(saved(t, []string{"a.gguf"}, file), open)
		if err != nil {
			t.Fatalf("type %d: %v", row.number, err)
		}
		last := read.Tensors[len(read.Tensors)-1]
		if want := 3 * 512 / row.elements * row.bytes; last.Bytes != want || last.Numel != 3*512 {
			t.Errorf("type %d (%v): %d bytes of %d elements, want %d", row.number, last.DType, last.Bytes, last.Numel, want)
		}
		if info, _ := os.Stat(last.Parts[0].File); padded(last.Parts[0].End, defaultAlignment) != info.Size() {
			t.Errorf("type %d ends at %d, the file at %d", row.number, last.Parts[0].End, info.Size())
		}
	}
	if len(sizes) != len(tensorTypes) {
		t.Errorf("%d types are read, %d have a size here", len(tensorTypes), len(sizes))
	}
}

func TestValues(t *testing.T) {
	file := fixtures.Must(Read(saved(t, []string{"a.gguf"}, llama()), open))(t)
	if got := file.Number("block_count", 0); got != 2 {
		t.Errorf("block_count %d", got)
	}
	if got := file.Numbers("attention.head_count_kv", 2); !slices.Equal(got, []int64{4, 0}) {
		t.Errorf("head_count_kv %v", got)
	}
	if got := file.Numbers("block_count", 3); !slices.Equal(got, []int64{2, 2, 2}) {
		t.Errorf("one number for three layers: %v", got)
	}
	if got := file.Numbers("attention.head_count_kv", 3); got != nil {
		t.Errorf("two numbers for three layers: %v", got)
	}
	if got := file.Items("tokenizer.ggml.tokens"); got != 3 {
		t.Errorf("%d tokens", got)
	}
	if file.Number("rope.freq_base", -1) != -1 || !file.Has("rope.freq_base") || file.Has("rope.other") {
		t.Error("a fraction counts as a whole number, or is lost")
	}
}

// TestGraph: blocks are units in their order, and a missing output is the embedding's table.
func TestGraph(t *testing.T) {
	file := fixtures.Must(Read(saved(t, []string{"a.gguf"}, llama()), open))(t)
	graph := fixtures.Must(file.Graph())(t)
	var names []string
	for _, unit := range graph.Units {
		names = append(names, unit.Name)
	}
	if want := []string{"token_embd", "blk.0", "blk.1", "output_norm", "output"}; !slices.Equal(names, want) {
		t.Errorf("units %q, want %q", names, want)
	}
	table, row := int64(4), int64(144)
	if got, want := graph.ParamBytes(), table*row+2*(2*row+1024)+1024; got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
	if len(graph.Ties) != 1 || graph.MaxSeq != 4096 || graph.Family != "llama" {
		t.Errorf("ties %q, %d tokens, family %q", graph.Ties, graph.MaxSeq, graph.Family)
	}
}

// part is file number of a set.
func part(number, count, tensors int) *made {
	file := (&made{}).key("split.no", kindU16, uint16(number)).key("split.count", kindU16, uint16(count)).key("split.tensors.count", kindI32, int32(tensors))
	if number == 0 {
		file.key("general.architecture", kindString, "llama")
	}
	return file.tensor(fmt.Sprintf("blk.%d.ffn_up.weight", number), 1, 8, 4)
}

var set = []string{"m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"}

func TestSets(t *testing.T) {
	file, err := Read(saved(t, set, part(0, 3, 3), part(1, 3, 3), part(2, 3, 3)), open)
	if err != nil || len(file.Tensors) != 3 || !strings.HasSuffix(file.Tensors[2].Parts[0].File, set[2]) {
		t.Fatalf("%v, %v", file, err)
	}
	for want, files := range map[string][]*made{
		`m-00003-of-00003.gguf: a file of the set is missing, which has 3`:        {part(0, 3, 3), part(1, 3, 3)},
		`m-00002-of-00003.gguf: split.no: it is 2, and the file's name says 1`:    {part(0, 3, 3), part(2, 3, 3), part(1, 3, 3)},
		`m-00002-of-00003.gguf: split.count: it is 4, and that of the first file`: {part(0, 3, 3), part(1, 4, 3), part(2, 3, 3)},
		`split.tensors.count: it is 4, and the files have 3 tensors`:              {part(0, 3, 4), part(1, 3, 4), part(2, 3, 4)},
		`tensor "blk.0.ffn_up.weight": it is there twice`:                         {part(0, 3, 4), part(1, 3, 4), part(2, 3, 4).tensor("blk.0.ffn_up.weight", 1, 8, 4)},
		`split.no: this is file 2 of a set: give the first one, "`:                {part(1, 3, 3)},
		`split.count: it is the first of 2 files, whose name must end in -00001-`: {part(0, 2, 2)},
		`split.count: 4096 files are more than 1024`:                              {part(0, 4096, 2)},
	} {
		if _, err := Read(saved(t, set, files...), open); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestFaults: each file has one fault, which its error names.
func TestFaults(t *testing.T) {
	with := func(key string, of kind, value ...any) []byte { return llama().key(key, of, value...).bytes() }
	aligned := llama().key("general.alignment", kindU32, uint32(64))
	aligned.alignment = 64
	if _, err := readHeader("a", bytes.NewReader(aligned.bytes()), int64(len(aligned.bytes()))); err != nil {
		t.Error(err)
	}
	whole := llama().bytes()
	patched := func(at int, value uint64) []byte {
		data := slices.Clone(whole)
		binary.LittleEndian.PutUint64(data[at:], value)
		return data
	}
	versioned := func(version uint32) []byte { file := llama(); file.version = version; return file.bytes() }
	shifted := llama()
	shifted.shift = 32
	for want, data := range map[string][]byte{
		`tensor "output_norm.weight": its data are at 32, but those before it end at 0`: shifted.bytes(),

		`not a GGUF file: it begins with "GGML"`:                          []byte("GGML\x03\x00\x00\x00"),
		`the file ends at byte 2, inside its header`:                      []byte("GG"),
		`version 1 of GGUF, which llama.cpp reads no longer`:              versioned(1),
		`version 4 of GGUF is unknown`:                                    versioned(4),
		`byte order of another machine`:                                   versioned(3 << 24),
		`131073 tensors are more than 131072`:                             patched(8, 131_073),
		`70000 keys are more than 65536`:                                  patched(16, 70_000),
		`131072 tensors do not fit into the remaining`:                    patched(8, 131_072),
		`the name of a key: 4294967295 bytes of text are more than 65535`: patched(24, 1<<32-1),
		`key "llama.block_count": it is there twice`:                      with("llama.block_count", kindU8, uint8(1)),
		`a key has no name`:                                               with("", kindU8, uint8(1)),
		`key "x": type 13 of its value is unknown`:                        with("x", 13),
		`key "x": type 9 of its items is unknown, or arrays lie in`:       with("x", kindArray, uint32(kindArray), uint64(1)),
		`key "x": 1000000000 items do not fit into the remaining`:         with("x", kindArray, uint32(kindU64), uint64(1_000_000_000)),
		`key "x": 2147483648 items are more than 1073741824`:              with("x", kindArray, uint32(kindU8), uint64(1<<31)),
		`key "x": 5000000 bytes of text do not fit`:                       with("x", kindArray, uint32(kindString), uint64(1), uint64(5_000_000)),
		`key "general.alignment": [3] is not a power of two`:              with("general.alignment", kindU32, uint32(3)),
		`key "general.alignment": [0] is not a power of two`:              with("general.alignment", kindU32, uint32(0)),
		`key "general.alignment": [32] is not a power of two of type u32`: with("general.alignment", kindU64, uint64(32)),
		`the name of a tensor: 64 bytes of text are more than 63`:         llama().tensor(strings.Repeat("n", 64), 0, 1).bytes(),
		`tensor "t": 5 dimensions are more than 4`:                        llama().tensor("t", 0, 1, 1, 1, 1, 1).bytes(),
		`tensor "t": dimension -1 is negative`:                            llama().tensor("t", 0, -1).bytes(),
		`tensor "t" of shape [4 1073741824 1073741824] is larger than`:    llama().tensor("t", 24, 1<<30, 1<<30, 4).bytes(),
		`tensor "t": rows of shape [2 200] are not whole blocks of 256`:   llama().tensor("t", 12, 200, 2).bytes(),
		`tensor "blk.1.attn_norm.weight": its data end at byte`:           whole[:len(whole)-10],
		`tensor "output_norm.weight": it is there twice`:                  llama().tensor("output_norm.weight", 0, 256).bytes(),
	} {
		_, err := readHeader("a", bytes.NewReader(data), int64(len(data)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
