package executor

import (
	"context"
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/weights"
)

// Uploader is a [Machine] that reads values itself, many at once, and checks that its arenas have
// them.
type Uploader interface {
	// Upload fills places of arenas, in any order, and returns when they have their
	// values. It calls onProgress with the number of new bytes, never concurrently.
	Upload(ctx context.Context, uploads []Upload, onProgress func(bytes int64)) error
}

// Upload is values and their place.
type Upload struct {
	Device int
	Offset int64 // in the arena
	Values weights.Range
}

// Transfer is how many bytes came into arenas, or left them, and how long that took.
type Transfer struct {
	Bytes   int64
	Seconds float64
	// DiskBytes of a load came from a disk past the page cache, in DiskSeconds.
	DiskBytes   int64
	DiskSeconds float64
}

// planUpload records the place of a parameter's values if machine and source support uploads. The
// values are read after everything is cleared.
func (loader *loader) planUpload(name string, param *bind.Param) (planned bool, err error) {
	_, uploads := loader.machine.(Uploader)
	source, ranged := loader.source.(weights.Ranged)
	if !uploads || !ranged {
		return false, nil
	}
	ranges, err := source.Ranges(name, param.DType)
	if err != nil {
		return true, err
	}
	at, end := param.Offset, param.Offset+bytesOf(param)
	for _, values := range ranges {
		loader.uploads = append(loader.uploads, Upload{param.Device, at, values})
		at += values.Bytes
	}
	switch {
	case at > end:
		err = more(name, param)
	case at < end:
		err = fewer(name, param)
	}
	return true, err
}

// upload has the machine read the planned values, and measures the time.
func (loader *loader) upload(ctx context.Context) error {
	uploader, is := loader.machine.(Uploader)
	if !is || len(loader.uploads) == 0 {
		return nil
	}
	loading := &Transfer{}
	for i := range loader.uploads {
		loading.Bytes += loader.uploads[i].Values.Bytes
	}
	begin := time.Now()
	if err := uploader.Upload(ctx, loader.uploads, loader.moved); err != nil {
		return err
	}
	loading.Seconds = time.Since(begin).Seconds()
	if source, ranged := loader.source.(weights.Ranged); ranged {
		loading.DiskBytes, loading.DiskSeconds = source.Disk()
	}
	loader.result.Loading = loading
	return nil
}

func more(name string, param *bind.Param) error {
	return fmt.Errorf("%q: more than the %d × %d values that the model has", name, param.Rows, param.Columns)
}

func fewer(name string, param *bind.Param) error {
	return fmt.Errorf("%q: fewer than the %d × %d values that the model has", name, param.Rows, param.Columns)
}
