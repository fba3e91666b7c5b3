package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// file is one file of an archive.
type file struct {
	name string
	mode int64
	data []byte
}

// archive packs a program with license, completion files and man page: a zip file for Windows,
// otherwise a compressed tar file.
func (packer *packer) archive(platform *platform, program string) error {
	if packer.extras == nil {
		var err error
		if packer.extras, err = packer.extraFiles(); err != nil {
			return err
		}
	}
	data, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	stem := packer.stem(platform)
	files := append([]file{{filepath.Base(program), 0o755, data}}, packer.extras...)
	for i := range files {
		files[i].name = stem + "/" + files[i].name
	}
	write, ending := writeTar, ".tar.gz"
	if platform.system == "windows" {
		write, ending = writeZip, ".zip"
	}
	name := filepath.Join(packer.archives, stem+ending)
	target, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := errors.Join(write(target, files, packer.made.when), target.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return say(name)
}

// writeTar writes a tar file through gzip, whose header has neither name nor time.
func writeTar(to io.Writer, files []file, when time.Time) error {
	compressed, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return err
	}
	writer := tar.NewWriter(compressed)
	for i := range files {
		header := tar.Header{Typeflag: tar.TypeReg, Name: files[i].name, Mode: files[i].mode, Size: int64(len(files[i].data)), ModTime: when, Format: tar.FormatUSTAR}
		if err := writer.WriteHeader(&header); err != nil {
			return err
		}
		if _, err := writer.Write(files[i].data); err != nil {
			return err
		}
	}
	return errors.Join(writer.Close(), compressed.Close())
}

func writeZip(to io.Writer, files []file, when time.Time) error {
	writer := zip.NewWriter(to)
	for i := range files {
		target, err := writer.CreateHeader(&zip.FileHeader{Name: files[i].name, Method: zip.Deflate, Modified: when})
		if err != nil {
			return err
		}
		if _, err := target.Write(files[i].data); err != nil {
			return err
		}
	}
	return writer.Close()
}

// sumsFile lists all files in the format of `sha256sum -c`.
const sumsFile = "SHA256SUMS"

func checksums(folder string) error {
	entries, err := os.ReadDir(folder) // by name
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, entry := range entries {
		if entry.Name() == sumsFile {
			continue
		}
		data, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(data), entry.Name())
	}
	name := filepath.Join(folder, sumsFile)
	if err := os.WriteFile(name, []byte(text.String()), 0o644); err != nil {
		return err
	}
	return say(name)
}
