package weights

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// bigConfig has an embedding of 2¹⁷ × 32 values: four chunks.
const bigConfig = `{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32, "intermediate_size": 4,
	"num_attention_heads": 1, "num_hidden_layers": 1, "vocab_size": 131072, "tie_word_embeddings": true}`

// TestChunks: a parameter comes in bounded pieces.
func TestChunks(t *testing.T) {
	folder := t.TempDir()
	writeCheckpoint(t, folder, bigConfig, modelgraph.BF16)
	source, err := Checkpoint(readGraph(t, folder))
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	pieces := 0
	err = source.Stream(context.Background(), "model.embed_tokens.weight", modelgraph.F32, func(piece []byte) error {
		pieces++
		if len(piece) > 4<<20 {
			t.Errorf("a piece of %d bytes", len(piece))
		}
		all = append(all, piece...)
		return nil
	})
	if err != nil || pieces != 4 || !bytes.Equal(all, rawOf(0, 1<<22, modelgraph.F32)) {
		t.Errorf("%d pieces of %d bytes together, %v", pieces, len(all), err)
	}
	if err := source.Close(); err != nil {
		t.Error(err)
	}
}

// TestChanged changes the file between two chunks: the error names it, and what
// was taken is not passed off as weights.
func TestChanged(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"truncated": func(path string) error { return os.Truncate(path, 1<<20) },
		"grown":     func(path string) error { return os.Truncate(path, 1<<30) },
		"written to": func(path string) error {
			file, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = file.WriteAt([]byte{1}, 8<<20)
			return errors.Join(err, file.Close())
		},
		"written to, its time set back": func(path string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			file, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = file.WriteAt([]byte{1}, 100_000)
			return errors.Join(err, file.Close(), os.Chtimes(path, info.ModTime(), info.ModTime()))
		},
		"replaced": func(path string) error {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return errors.Join(os.WriteFile(path+"2", data, 0o666), os.Rename(path+"2", path))
		},
		"removed": os.Remove,
		"its folder moved away": func(path string) error {
			return os.Rename(filepath.Dir(path), filepath.Dir(path)+"2")
		},
	} {
		folder := filepath.Join(t.TempDir(), "model")
		writeCheckpoint(t, folder, bigConfig, modelgraph.F32)
		path := filepath.Join(folder, "model.safetensors")
		source, err := Checkpoint(readGraph(t, folder))
		if err != nil {
			t.Fatal(err)
		}
		pieces := 0
		err = source.Stream(context.Background(), "model.embed_tokens.weight", modelgraph.F32, func([]byte) error {
			pieces++
			if pieces == 1 {
				return change(path)
			}
			return nil
		})
		if late := name == "its folder moved away"; (err == nil) != late {
			t.Errorf("%s: the stream ends with %v", name, err)
		}
		err = errors.Join(err, source.Close())
		var changed *ChangedError
		if !errors.As(err, &changed) || changed.File != path || !strings.Contains(err.Error(), path+": changed while it was read: it was inode ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCancelled: an ended context, or an error of who takes the values, ends a
// stream between two chunks.
func TestCancelled(t *testing.T) {
	graph := tiny(t, bigConfig)
	ctx, cancel := context.WithCancel(context.Background())
	pieces := 0
	err := Random(graph, 1).Stream(ctx, "model.embed_tokens.weight", modelgraph.BF16, func([]byte) error {
		pieces++
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || pieces != 1 {
		t.Errorf("%d pieces, %v", pieces, err)
	}
	full := errors.New("full")
	err = Random(graph, 1).Stream(context.Background(), "model.embed_tokens.weight", modelgraph.BF16, func([]byte) error { return full })
	if !errors.Is(err, full) {
		t.Error(err)
	}
}
