//go:build cuda && linux && cgo && amd64

package cuda

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/bind"
)

// finding is a word of host memory that the GPU sets when it finds a NaN or an infinity.
// names are the tensors that it searches.
type finding struct {
	word
	unit  string
	names []string
	areas []kernel.Area
}

// finite prepares the search for NaN and infinities after a run's kernels. Reading every
// tensor of a run again would take some hundredths of a training step. The search reads
// what the run passes on, the norms of gradients, and weights once an update wrote a NaN or
// an infinity. A NaN in a tensor kept for backward reaches one of those. The search then
// reads the kept tensors too, so that the error names the first tensor, as on the processor.
// Optimizer moments are means of gradients and of their squares, so they stay finite while the norms do.
func finite(device *device, bound *bind.Bound, run *bind.Run) (launches []kernel.Launch, found []finding, err error) {
	areas, names := areasOf(device, run)
	for first := 0; first < len(areas); first += kernel.MostAreas {
		end := min(first+kernel.MostAreas, len(areas))
		word, err := device.words.take()
		if err != nil {
			return nil, nil, err
		}
		launch, err := kernel.Finite(device.kernels, areas[first:end], word.at)
		if err != nil {
			return nil, nil, err
		}
		launches, found = append(launches, launch), append(found, finding{word, bound.Recipe.Units[run.Unit].Name, names[first:end], areas[first:end]})
	}
	return launches, found, nil
}

// areasOf returns the areas that a run wrote, and their names. If the run passes nothing
// on, the search reads all of them.
func areasOf(device *device, run *bind.Run) (areas []kernel.Area, names []string) {
	some := false
	for _, made := range run.Made() {
		looked := slices.Contains(passedOn, made.Class)
		some = some || looked
		areas = append(areas, kernel.Area{Matrix: device.matrix(made.Area), Looked: looked, Watched: made.Class == "weight"})
		names = append(names, made.Name)
	}
	for i := range areas {
		areas[i].Looked = areas[i].Looked || !some
	}
	return areas, names
}

var passedOn = []recipe.Class{"output", "input.gradient", "result", "norms", "weight"}

// consume returns the value that the GPU found and its tensor, and clears the word. The
// name is empty if the GPU found nothing.
func (found *finding) consume() (value float32, name string) {
	said := binary.LittleEndian.Uint64(found.data)
	if said == 0 {
		return 0, ""
	}
	binary.LittleEndian.PutUint64(found.data, 0)
	return []float32{0, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[said%4], found.names[said/4]
}

// word is eight bytes of pinned memory. The GPU writes a finding, and the host clears it.
type word struct {
	data []byte
	at   driver.Address
}

// words are the words of a device.
type words struct {
	pinned []*driver.Pinned
	left   []word
}

// take returns a word that is zero.
func (words *words) take() (word, error) {
	if len(words.left) == 0 {
		const count, size = 4096, 8
		pinned, err := driver.Pin(count * size)
		if err != nil {
			return word{}, err
		}
		clear(pinned.Data)
		words.pinned = append(words.pinned, pinned)
		for at := 0; at < count*size; at += size {
			words.give(word{pinned.Data[at : at+size], pinned.Address() + driver.Address(at)})
		}
	}
	last := len(words.left) - 1
	taken := words.left[last]
	words.left = words.left[:last]
	return taken, nil
}

func (words *words) give(back word) { words.left = append(words.left, back) }

func (words *words) free() error {
	var all []error
	for _, pinned := range words.pinned {
		all = append(all, pinned.Free())
	}
	words.pinned, words.left = nil, nil
	return errors.Join(all...)
}
