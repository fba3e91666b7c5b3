package highs

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/tetratelabs/wazero"
)

//go:embed highs.wasm.gz
var packed []byte

//go:embed names.json
var namesJSON []byte

// names is names.json: emscripten shortens the names of what the module
// imports and exports, and highs.js alone knows the long ones.
type names struct {
	Package string            `json:"package"`
	SHA256  string            `json:"wasm_sha256"`
	Imports map[string]string `json:"imports"` // short to long
	Exports map[string]string `json:"exports"` // long to short
}

// engine is the compiled module. It holds no state between solves: each has an
// instance, with a memory, of its own.
type engine struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
	names   names
}

var compiled = sync.OnceValues(compile)

// compile unpacks and compiles the module, with the host functions it imports.
func compile() (*engine, error) {
	ctx := context.Background()
	e := &engine{}
	wasm, err := unpack()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(namesJSON, &e.names); err != nil {
		return nil, fmt.Errorf("reading names.json: %w", err)
	}
	if sum := sha256.Sum256(wasm); hex.EncodeToString(sum[:]) != e.names.SHA256 {
		return nil, fmt.Errorf("highs.wasm has the SHA-256 %x, names.json is for %s", sum, e.names.SHA256)
	}
	e.runtime = wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCloseOnContextDone(true))
	if e.module, err = e.runtime.CompileModule(ctx, wasm); err != nil {
		return nil, fmt.Errorf("compiling HiGHS: %w", err)
	}
	if err := e.host(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

func unpack() ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpacking highs.wasm.gz: %w", err)
	}
	wasm, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("unpacking highs.wasm.gz: %w", err)
	}
	return wasm, nil
}
