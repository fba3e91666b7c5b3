package serving

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/gguf"
)

// TestEncoders: the buffers of encoders of images are those that llama.cpp computes, byte for byte,
// with flash attention and without (fixtures/oracle/mmproj.py).
func TestEncoders(t *testing.T) {
	exact, families := 0, map[string]bool{}
	for _, row := range encoders(t) {
		tower := fixtures.Must(newTower(headed(t, row.Header, row.Size), nil))(t)
		for _, flash := range []bool{true, false} {
			want := row.Off - row.Bytes
			if flash {
				want = row.On - row.Bytes
			}
			tower.flash = flash
			if got, judged := tower.compute(32); got != want || !judged {
				t.Errorf("%s, flash attention %v: %d bytes, llama.cpp has %d (%+d)", row.Family, flash, got, want, got-want)
			} else {
				exact++
				families[row.Family] = true
			}
		}
	}
	t.Logf("%d buffers of %d projectors are exact", exact, len(families))
	if exact < 64 || len(families) < 8 {
		t.Error("too few")
	}
}

// TestEncoderSizes: a size that no encoder has, or a file of another kind is an error that names it.
func TestEncoderSizes(t *testing.T) {
	rows := encoders(t)
	fault := func(key, format string, args ...any) error { return fmt.Errorf(key+": "+format, args...) }
	for key, want := range map[string]string{
		"clip.vision.embedding_length": "clip.vision.embedding_length", "clip.vision.block_count": "block_count", "clip.vision.patch_size": "patch_size", "clip.vision.image_size": "image_size",
		"clip.vision.attention.head_count": "head_count", "clip.vision.projector.scale_factor": "image_size",
	} {
		for _, number := range []uint32{0, 1 << 31, 5000} {
			data := unpacked(t, rows[0].Header)
			at := bytes.Index(data, []byte(key)) + len(key) + 4
			binary.LittleEndian.PutUint32(data[at:], number)
			if key == "clip.vision.projector.scale_factor" && number == 0 || key == "clip.vision.embedding_length" && number == 5000 || key == "clip.vision.image_size" && number == 5000 {
				continue // llama.cpp takes it
			}
			if _, err := newTower(stored(t, data, rows[0].Size), fault); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %d: %v", key, number, err)
			}
		}
	}
	sound := bytes.Replace(unpacked(t, rows[0].Header), []byte("clip.has_vision_encoder"), []byte("clip.has_visiox_encoder"), 1)
	if _, err := EncoderFromGGUF(stored(t, sound, rows[0].Size)); err == nil || !strings.Contains(err.Error(), "encoders of sound") {
		t.Error(err)
	}
	unknown := bytes.Replace(unpacked(t, rows[0].Header), []byte("gemma3"), []byte("gemmaX"), 1)
	encoder, err := EncoderFromGGUF(stored(t, unknown, rows[0].Size))
	if err != nil || encoder.Judged || encoder.Compute == 0 || encoder.Larger != encoder.Compute {
		t.Errorf("%+v, %v", encoder, err)
	}
	large := slices.IndexFunc(rows, func(row encoderRow) bool { return row.Family == "qwen2vl_merger" })
	if encoder, err = EncoderFromGGUF(headed(t, rows[large].Header, rows[large].Size)); err != nil || !encoder.Judged || encoder.Larger < encoder.Compute/2 {
		t.Errorf("%+v, %v", encoder, err)
	}
}

// TestDamagedEncoders: a damaged header is an error, or an encoder with sizes of a device, in bounded time.
func TestDamagedEncoders(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 9))
	rows, read := encoders(t), 0
	const cases, most = 3000, 1 << 62
	for i := range cases {
		row := rows[i%len(rows)]
		data := unpacked(t, row.Header)
		for range 1 + random.IntN(4) {
			data[random.IntN(min(len(data), 2000))] = byte(random.Uint32())
		}
		path := filepath.Join(t.TempDir(), "mmproj.gguf")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := gguf.Read(path, func(path string) (*os.File, int64, error) {
			file, err := os.Open(path)
			return file, row.Size, err
		})
		if err != nil {
			continue
		}
		encoder, err := EncoderFromGGUF(file)
		if err != nil {
			continue
		}
		read++
		if encoder.Weights < 0 || encoder.Weights > most || encoder.Compute <= 0 || encoder.Compute > most || encoder.Larger < 0 || encoder.Larger > most {
			t.Errorf("case %d: %+v", i, encoder)
		}
	}
	t.Logf("%d of %d damaged files are still encoders", read, cases)
	if read < cases/20 {
		t.Error("too few are read")
	}
}

// encoderRow is an encoder that llama.cpp measured: bytes of its tensors, and of all with flash attention
// and without.
type encoderRow struct {
	Family, Header string
	Size, Bytes    int64
	On             int64 `json:"flash_on"`
	Off            int64 `json:"flash_off"`
}

func encoders(t *testing.T) []encoderRow {
	t.Helper()
	return fixtures.Must(fixtures.Rows[encoderRow]("../../fixtures/oracle/mmproj.jsonl.gz"))(t)
}

// headed is a file with a header of the oracle and no weights.
func headed(t *testing.T, header string, size int64) *gguf.File {
	t.Helper()
	return stored(t, unpacked(t, header), size)
}

func unpacked(t *testing.T, header string) []byte {
	t.Helper()
	reader := fixtures.Must(gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(header))))(t)
	data := fixtures.Must(io.ReadAll(reader))(t)
	return data
}

func stored(t *testing.T, data []byte, size int64) *gguf.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mmproj.gguf")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := gguf.Read(path, func(path string) (*os.File, int64, error) {
		file, err := os.Open(path)
		return file, size, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return file
}
