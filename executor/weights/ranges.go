package weights

import (
	"fmt"
	"sync"

	"github.com/devmap-dev/devmap/modelgraph"
)

// Ranged is a Source that many goroutines read at once, each at any place.
type Ranged interface {
	Source
	// Ranges returns the values of a parameter converted to dtype, one range after the other. They
	// are valid until Close.
	Ranges(name string, dtype modelgraph.DType) ([]Range, error)
	// Disk returns how many bytes of ranges came from a disk and not from the page cache, and the
	// time from the beginning of the first such read to the end of the last.
	Disk() (bytes int64, seconds float64)
}

// Range is values that follow each other.
type Range struct {
	Bytes int64
	// Step is how many bytes a read should take, beginning at a multiple of it.
	Step int64
	// Place names the origin of the values in errors.
	Place string
	// Read fills into with bytes from an offset on. Both must be at whole values.
	Read func(into []byte, from int64) error
}

// fileStep fits into a processor's cache until it is summed up or converted, and hides the cost of
// a call.
const fileStep = 256 << 10

// Ranges implements [Ranged].
func (source *stored) Ranges(name string, dtype modelgraph.DType) ([]Range, error) {
	slices, known := source.slices[name]
	if err := asked(name, known, dtype); err != nil {
		return nil, err
	}
	ranges := make([]Range, len(slices))
	for i := range slices {
		from := &slices[i]
		from.file.openDirect(&source.disk)
		width, wanted := from.dtype.Bits()/8, dtype.Bits()/8
		ranges[i] = Range{
			Bytes: (from.end - from.begin) / width * wanted, Step: fileStep,
			Place: fmt.Sprintf("%s: tensor %q", from.file.path, from.tensor),
			Read: func(into []byte, at int64) error {
				if from.dtype == dtype {
					return from.read(into, from.begin+at)
				}
				return from.converted(into, dtype, from.begin+at/wanted*width)
			},
		}
	}
	return ranges, nil
}

// raws are buffers for values to convert, of a block each.
var raws = sync.Pool{New: func() any { return new([rawBlock * 8]byte) }}

// rawBlock is how many values are read and converted at a time: 256 KiB of fp64.
const rawBlock = 32 << 10

// converted fills into with values of a type that is not the file's.
func (from *slice) converted(into []byte, dtype modelgraph.DType, at int64) error {
	buffer, _ := raws.Get().(*[rawBlock * 8]byte)
	defer raws.Put(buffer)
	width, wanted := int(from.dtype.Bits()/8), int(dtype.Bits()/8)
	for len(into) > 0 {
		count := min(rawBlock, len(into)/wanted)
		raw := buffer[:count*width]
		if err := from.read(raw, at); err != nil {
			return err
		}
		convert(into[:0:count*wanted], raw, from.dtype, dtype)
		into, at = into[count*wanted:], at+int64(len(raw))
	}
	return nil
}

// Ranges implements [Ranged]. A chunk has the same values as in Stream.
func (source *random) Ranges(name string, dtype modelgraph.DType) ([]Range, error) {
	of, known := source.of[name]
	if err := asked(name, known, dtype); err != nil {
		return nil, err
	}
	width := dtype.Bits() / 8
	all := of.tensor.Numel
	return []Range{{
		Bytes: all * width, Step: chunk * width, Place: fmt.Sprintf("%q, random from seed %d", name, source.seed),
		Read: func(into []byte, at int64) error {
			for len(into) > 0 {
				begin := at / width / chunk * chunk
				count := min(chunk, all-begin)
				skip := at - begin*width
				if skip == 0 && int64(len(into)) >= count*width {
					of.generate(into[:0:count*width], source.seed, begin, count, dtype)
					into, at = into[count*width:], at+count*width
					continue
				}
				values := of.generate(nil, source.seed, begin, count, dtype)
				size := copy(into, values[skip:])
				into, at = into[size:], at+int64(size)
			}
			return nil
		},
	}}, nil
}
