package forward

import "github.com/devmap-dev/devmap/costmodel/internal/allocator"

// memory counts the bytes of live tensors, and the most that were.
type memory struct {
	live, peak int64
	width      int64   // bytes of a value in the component's type
	traffic    float64 // bytes of matrices and activations that kernels read and wrote
	// cache is the process's allocator, if followed; stopped: later operations allocate nothing.
	cache   *allocator.Cache
	stopped bool
}

// value is a tensor's storage. It is freed when nothing holds it any more.
type value struct {
	bytes      int64
	references int
	block      *allocator.Block
}

// quantum is the allocator's granule of sizes (CUDACachingAllocator.cpp: kMinBlockSize).
const quantum = 512

// alloc is a new storage of that many bytes.
func (m *memory) alloc(bytes int64) *value {
	if m.stopped {
		return &value{references: 1}
	}
	bytes = (bytes + quantum - 1) / quantum * quantum
	made := &value{bytes: bytes, references: 1}
	if m.cache != nil && bytes > 0 {
		made.block = m.cache.Alloc(0, bytes)
		made.bytes = made.block.Size
	}
	m.live += made.bytes
	m.peak = max(m.peak, m.live)
	m.traffic += float64(bytes)
	return made
}

// new is a tensor of so many elements in the component's type.
func (m *memory) new(elements int64) *value { return m.alloc(elements * m.width) }

// single is a tensor in single precision.
func (m *memory) single(elements int64) *value { return m.alloc(elements * 4) }

// hold adds a name to a value: a view, a member of a tuple. Nil is a view of the caller's values.
func (shared *value) hold() *value {
	if shared != nil {
		shared.references++
	}
	return shared
}

// drop takes names away. Nil values have none.
func (m *memory) drop(values ...*value) {
	for _, dropped := range values {
		if dropped == nil {
			continue
		}
		dropped.references--
		if dropped.references == 0 {
			m.live -= dropped.bytes
			if dropped.block != nil {
				m.cache.Free(dropped.block)
			}
		}
		if dropped.references < 0 {
			panic("forward: a value is dropped twice")
		}
	}
}

// become gives a name to a new value, and takes it from the old one.
func (m *memory) become(name **value, fresh *value) {
	old := *name
	*name = fresh
	m.drop(old)
}

// joined takes a batch's slices away, when several were copied into one.
func (m *memory) joined(slices []*value) {
	if len(slices) > 1 {
		total := int64(0)
		for _, slice := range slices {
			total += slice.bytes
		}
		m.drop(m.alloc(total))
	}
	m.drop(slices...)
}

// picture allocates one.
func (m *memory) picture(shape picture) picture {
	shape.value = m.new(shape.elements())
	return shape
}

// like is another tensor of a picture's shape.
func (m *memory) like(pic picture) picture { return m.picture(pic) }

// replace gives a name to a new picture.
func (m *memory) replace(name *picture, fresh picture) {
	old := *name
	*name = fresh
	m.drop(old.value)
}

// picture is a tensor [batch, channels, frames, height, width]. Images have one frame.
type picture struct {
	*value
	batch, channels       int64
	frames, height, width int64
	// strided: channels last, as attention leaves them; kernels that want them first copy it.
	strided bool
}

func (pic picture) places() int64   { return pic.batch * pic.frames * pic.height * pic.width }
func (pic picture) elements() int64 { return pic.places() * pic.channels }

// tiles are overlapping parts of a picture: of the given sides, the next one so many places further.
func (pic picture) tiles(height, width, down, right int64) []picture {
	var tiles []picture
	for top := int64(0); top < pic.height; top += down {
		for left := int64(0); left < pic.width; left += right {
			tile := pic
			tile.value = nil
			tile.height, tile.width = min(height, pic.height-top), min(width, pic.width-left)
			tiles = append(tiles, tile)
		}
	}
	return tiles
}
