// Command vendor writes highs.wasm.gz, names.json and LICENSE-highs.txt from
// the npm package of HiGHS:
//
//	npm pack highs@1.15.3
//	go run ./planner/internal/solve/highs/internal/vendor highs-1.15.3.tgz planner/internal/solve/highs
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: vendor highs-VERSION.tgz FOLDER")
		os.Exit(2) //nolint:forbidigo // main
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "vendor:", err)
		os.Exit(1) //nolint:forbidigo // main
	}
}

func run(archive, folder string) error {
	files, err := read(archive)
	if err != nil {
		return fmt.Errorf("reading %q: %w", archive, err)
	}
	wasm, script := files["package/build/highs.wasm"], files["package/build/highs.js"]
	var manifest struct{ Name, Version string }
	if err := json.Unmarshal(files["package/package.json"], &manifest); err != nil {
		return err
	}
	sum := sha256.Sum256(wasm)
	imports, exports, err := tables(script)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(map[string]any{
		"package": manifest.Name + "@" + manifest.Version, "wasm_sha256": hex.EncodeToString(sum[:]),
		"imports": imports, "exports": exports,
	}, "", "  ")
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if _, err := zip.Write(wasm); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	return errors.Join(
		write(folder, "names.json", append(text, '\n')),
		write(folder, "highs.wasm.gz", packed.Bytes()),
		write(folder, "LICENSE-highs.txt", files["package/LICENSE"]),
	)
}

func write(folder, name string, data []byte) error {
	return os.WriteFile(filepath.Join(folder, name), data, 0o644)
}

var (
	importTable = regexp.MustCompile(`wasmImports=\{([^}]*)\}`)
	importEntry = regexp.MustCompile(`(\w+):(\w+)`)
	startEntry  = regexp.MustCompile(`wasmExports\["(\w+)"\]\(\)`)
	exportEntry = regexp.MustCompile(`\b_(\w+)=(?:Module\["\w+"\]=)?wasmExports\["(\w+)"\]`)
)

// tables reads both name tables out of emscripten's script: what the module
// imports, short name to long, and what it exports, long to short.
func tables(script []byte) (imports, exports map[string]string, err error) {
	imports, exports = map[string]string{}, map[string]string{}
	table, start := importTable.FindSubmatch(script), startEntry.FindSubmatch(script)
	if table == nil || start == nil {
		return nil, nil, errors.New("highs.js holds no wasmImports={…} or no call of the module's constructors")
	}
	exports["__wasm_call_ctors"] = string(start[1])
	for _, match := range importEntry.FindAllSubmatch(table[1], -1) {
		imports[string(match[1])] = string(match[2])
	}
	for _, match := range exportEntry.FindAllSubmatch(script, -1) {
		exports[string(match[1])] = string(match[2])
	}
	return imports, exports, nil
}

func read(archive string) (map[string][]byte, error) {
	file, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read
	zip, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for reader := tar.NewReader(zip); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if files[header.Name], err = io.ReadAll(reader); err != nil {
			return nil, err
		}
	}
}
