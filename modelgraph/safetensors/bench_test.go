package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// header writes the header of n matrices of rows x 8192 BF16 and the length
// of their data in bytes.
func header(prefix string, n, rows int) (string, int64) {
	var b strings.Builder
	b.WriteString(`{"__metadata__":{"format":"pt"}`)
	size := int64(rows) * 8192 * 2
	for i := range int64(n) {
		fmt.Fprintf(&b, `,"%s.layers.%d.self_attn.q_proj.weight":{"dtype":"BF16","shape":[%d,8192],"data_offsets":[%d,%d]}`,
			prefix, i, rows, i*size, (i+1)*size)
	}
	b.WriteString("}")
	return b.String(), int64(n) * size
}

// The tensor count of a 70B model, in one file: the goal is 5 ms.
func BenchmarkReadHeader721(b *testing.B) {
	h, data := header("model", 721, 8192)
	f := binary.LittleEndian.AppendUint64(nil, uint64(len(h)))
	f = append(f, h...)
	r := bytes.NewReader(f)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readHeader(r, int64(len(f))+data, "f"); err != nil {
			b.Fatal(err)
		}
	}
}

// 191 sparse shards of 2.1 GB, 400 GB in all, each with 16 tensors.
func BenchmarkReadFolder400GB(b *testing.B) {
	dir := b.TempDir()
	total := sparseFolder(b, dir, 191, 16, 8192)
	if total < 400e9 {
		b.Fatalf("folder of %d bytes", total)
	}
	b.ReportAllocs()
	for b.Loop() {
		c, err := readFolder(dir)
		if err != nil || len(c.Tensors) != 191*16 || len(c.Warnings) > 0 {
			b.Fatal(c, err)
		}
	}
}

// sparseFolder writes shards whose data is a hole, and their index. It returns
// the bytes of data.
func sparseFolder(tb testing.TB, dir string, shards, tensors, rows int) int64 {
	tb.Helper()
	var entries []string
	var total int64
	for i := range shards {
		prefix := fmt.Sprintf("s%d", i)
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, shards)
		h, data := header(prefix, tensors, rows)
		path := filepath.Join(dir, name)
		write(tb, path, file(h, 0))
		if err := os.Truncate(path, 8+int64(len(h))+data); err != nil {
			tb.Skipf("sparse files: %v", err)
		}
		total += data
		for j := range tensors {
			entries = append(entries, fmt.Sprintf("%q:%q", fmt.Sprintf("%s.layers.%d.self_attn.q_proj.weight", prefix, j), name))
		}
	}
	write(tb, filepath.Join(dir, "model.safetensors.index.json"),
		fmt.Sprintf(`{"metadata":{"total_size":%d},"weight_map":{%s}}`, total, strings.Join(entries, ",")))
	return total
}

func write(tb testing.TB, path, content string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		tb.Fatal(err)
	}
}
