package gguf

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// made is a GGUF file for tests, in the order of its bytes.
type made struct {
	version   uint32
	tensors   []madeTensor
	values    []byte
	keys      uint64
	alignment int64
	shift     uint64 // of the place of every tensor's data
}

type madeTensor struct {
	name   string
	shape  []int64 // row first
	number uint32
}

func (file *made) key(name string, of kind, value ...any) *made {
	file.keys++
	file.values = text(file.values, name)
	file.values = binary.LittleEndian.AppendUint32(file.values, uint32(of))
	for _, one := range value {
		if words, is := one.(string); is {
			file.values = text(file.values, words)
			continue
		}
		file.values, _ = binary.Append(file.values, binary.LittleEndian, one)
	}
	return file
}

func (file *made) tensor(name string, number uint32, shape ...int64) *made {
	file.tensors = append(file.tensors, madeTensor{name, shape, number})
	return file
}

func text(data []byte, words string) []byte {
	return append(binary.LittleEndian.AppendUint64(data, uint64(len(words))), words...)
}

// bytes is the whole file, with zeros for weights.
func (file *made) bytes() []byte {
	alignment := file.alignment
	if alignment == 0 {
		alignment = defaultAlignment
	}
	version := file.version
	if version == 0 {
		version = 3
	}
	data := binary.LittleEndian.AppendUint32([]byte("GGUF"), version)
	data = binary.LittleEndian.AppendUint64(data, uint64(len(file.tensors)))
	data = binary.LittleEndian.AppendUint64(data, file.keys)
	data = append(data, file.values...)
	var sum int64
	for _, tensor := range file.tensors {
		data = text(data, tensor.name)
		data = binary.LittleEndian.AppendUint32(data, uint32(len(tensor.shape)))
		count := int64(1)
		for _, side := range tensor.shape {
			data = binary.LittleEndian.AppendUint64(data, uint64(side))
			count *= side
		}
		data = binary.LittleEndian.AppendUint32(data, tensor.number)
		data = binary.LittleEndian.AppendUint64(data, uint64(sum)+file.shift)
		dtype, _ := typeOf(tensor.number)
		size := count * dtype.Bits() / 8
		if dtype.Bits() == 0 {
			size = blockBytes(tensor.number, count)
		}
		if size < 0 || size > 1<<20 {
			size = 0 // the header is at fault before its data are
		}
		sum += padded(size, alignment)
	}
	return append(append(data, make([]byte, padded(int64(len(data)), alignment)-int64(len(data)))...), make([]byte, sum)...)
}

// blockBytes are sizes of llama.cpp's own table (ggml.c, type_traits).
func blockBytes(number uint32, count int64) int64 {
	for _, row := range sizes {
		if row.number == number {
			return count / row.elements * row.bytes
		}
	}
	panic(fmt.Sprint("no size of type ", number))
}

// open opens the test's own files.
func open(path string) (*os.File, int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	return file, info.Size(), err
}

// saved writes files into a folder, and returns the path of the first.
func saved(t *testing.T, names []string, files ...*made) string {
	t.Helper()
	dir := t.TempDir()
	for i, file := range files {
		if err := os.WriteFile(filepath.Join(dir, names[i]), file.bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, names[0])
}

// llama is a small model with two blocks.
func llama() *made {
	file := (&made{}).key("general.architecture", kindString, "llama").
		key("llama.block_count", kindU32, uint32(2)).
		key("llama.context_length", kindU32, uint32(4096)).
		key("llama.attention.head_count_kv", kindArray, uint32(kindI32), uint64(2), int32(4), int32(0)).
		key("tokenizer.ggml.tokens", kindArray, uint32(kindString), uint64(3), "a", "bc", "").
		key("llama.rope.freq_base", kindF32, float32(10000)).
		tensor("output_norm.weight", 0, 256).
		tensor("token_embd.weight", 12, 256, 4)
	for i := range 2 {
		file.tensor(fmt.Sprintf("blk.%d.attn_q.weight", i), 12, 256, 2).tensor(fmt.Sprintf("blk.%d.attn_norm.weight", i), 0, 256)
	}
	return file
}
