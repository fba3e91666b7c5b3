package wheel

import (
	"archive/zip"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"time"
)

// archive writes a zip file. Its bytes depend only on the entries and the time. Programs keep their
// executable mode, which pip reads.
func archive(to io.Writer, entries []entry, when time.Time) error {
	writer := zip.NewWriter(to)
	writer.RegisterCompressor(zip.Deflate, func(to io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(to, flate.DefaultCompression)
	})
	for i := range entries {
		header := &zip.FileHeader{Name: entries[i].name, Method: zip.Deflate, Modified: when.UTC()}
		header.SetMode(0o644)
		if entries[i].program {
			header.SetMode(0o755)
		}
		file, err := writer.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := file.Write(entries[i].data); err != nil {
			return err
		}
	}
	return writer.Close()
}

// record lists files with their SHA-256 and size; its own line has neither.
func record(name string, entries []entry) entry {
	var text []byte
	for i := range entries {
		sum := sha256.Sum256(entries[i].data)
		text = fmt.Appendf(text, "%s,sha256=%s,%d\n", entries[i].name, base64.RawURLEncoding.EncodeToString(sum[:]), len(entries[i].data))
	}
	return entry{name: name, data: fmt.Appendf(text, "%s,,\n", name)}
}
