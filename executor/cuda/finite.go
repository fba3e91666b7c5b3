//go:build cuda && linux && cgo && amd64

package cuda

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/bind"
)

// finding is a word of the host's in which the GPU says that numbers are none, and
// of which tensors.
type finding struct {
	word
	unit  string
	names []string
}

// finite prepares what looks for NaN and infinities behind a run's kernels. To read
// again everything that a run keeps would take some hundredths of a training step.
// What it hands on, what the optimizer made of weights, and the norms of gradients
// are looked at; of what is kept for backward whatever is no number comes into one
// of those, and it is searched when that is found, so that the first tensor is told,
// as the processor tells it. Moments that were finite stay so while norms are: they
// are means of gradients and of their squares.
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
		launches, found = append(launches, launch), append(found, finding{word, bound.Recipe.Units[run.Unit].Name, names[first:end]})
	}
	return launches, found, nil
}

// areas are what a run made, and what each is called. A run that hands nothing on is
// looked through as a whole.
func areasOf(device *device, run *bind.Run) (areas []kernel.Area, names []string) {
	some := false
	for _, made := range run.Made() {
		looked := isPassedOn(made.Class)
		some = some || looked
		areas = append(areas, kernel.Area{Matrix: device.matrix(made.Area), Looked: looked})
		names = append(names, made.Name)
	}
	for i := range areas {
		areas[i].Looked = areas[i].Looked || !some
	}
	return areas, names
}

func isPassedOn(class recipe.Class) bool {
	switch class {
	case "output", "input.gradient", "result", "norms", "weight":
		return true
	}
	return false
}

// told is the value that a word says was found, and in which tensor; empty: none
// was. The word is clean then.
func (found *finding) consume() (value float32, name string) {
	said := binary.LittleEndian.Uint64(found.data)
	if said == 0 {
		return 0, ""
	}
	binary.LittleEndian.PutUint64(found.data, 0)
	return []float32{0, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[said%4], found.names[said/4]
}

// word is eight bytes of pinned memory, which both sides write: the GPU a finding,
// the host that it was read.
type word struct {
	data []byte
	at   driver.Address
}

// words are a device's.
type words struct {
	pinned []*driver.Pinned
	left   []word
}

// take is a word that is clean.
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
