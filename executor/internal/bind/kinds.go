package bind

import (
	"strings"

	"github.com/devmap-dev/devmap/executor/program"
)

// kind is what a buffer is for, by its name (package compile), and its unit if it belongs to one.
type kind struct {
	what what
	of   int32
}

type what uint8

const (
	unknown what = iota
	ofWeights
	ofMaster
	ofState
	ofGrads
	ofCache
	ofFeed
	ofInput
	ofSaved
	ofLate
	ofPending
	ofHost
	ofRemade
	ofForward
	ofRecompute
	ofBackward
	ofLearn
	ofDecode
	slotAct   // a slot of a channel: of the stream forward,
	slotGrad  // back,
	slotTok   // forward of a token,
	slotIDs   // of generated ids,
	slotTied  // of the gradient of another use of a weight,
	slotNorm  // of squared norms,
	slotTotal // and of their sum
	theStream
	theGradient
	anOut  // of a chunk, forward
	aToken // the same of a token
	aDout  // of a chunk, back
	theIDs // generated ones
	theNorms
	theTotal
	theResult // logits, losses
)

// unitBuffers are the buffers of units, by the word after the unit's name.
var unitBuffers = map[string]what{
	"weights": ofWeights, "master": ofMaster, "state": ofState, "grads": ofGrads, "cache": ofCache, "feed": ofFeed,
	"input": ofInput, "saved": ofSaved, "late": ofLate, "pending": ofPending, "host": ofHost, "remade": ofRemade,
	"forward": ofForward, "recompute": ofRecompute, "backward": ofBackward, "learn": ofLearn, "decode": ofDecode,
}

// deviceBuffers are the buffers of devices, whatever their units.
var deviceBuffers = map[string]what{
	"stream": theStream, "gradient": theGradient, "out": anOut, "token": aToken, "dout": aDout, "ids": theIDs,
	"norms": theNorms, "total": theTotal, "losses": theResult, "logits": theResult,
}

// slots are the buffers of channels, by the channels' names.
var slots = map[string]what{
	"act": slotAct, "grad": slotGrad, "tok": slotTok, "ids": slotIDs, "tied": slotTied, "norm": slotNorm, "total": slotTotal,
}

// kindOf reads a buffer's name: a unit's name and a word, or a word alone, after which there may be
// a number in brackets. Copies of a tied weight have the owner's name. Only their device
// distinguishes them from the owner's buffers.
func (bound *Bound) kindOf(buffer *program.Buffer, units map[string]int32) kind {
	name := buffer.Name
	if strings.HasSuffix(name, "]") {
		name = name[:strings.LastIndexByte(name, '[')]
	}
	at := strings.LastIndexByte(name, '.')
	if at < 0 {
		return kind{deviceBuffers[name], program.None}
	}
	if buffer.Class == program.Slot {
		channel, _, _ := strings.Cut(name[:at], "[")
		return kind{slots[channel], program.None}
	}
	unit, known := units[name[:at]]
	if !known {
		unit = program.None
	}
	return kind{unitBuffers[name[at+1:]], unit}
}

// buffer returns the buffer with a name on a device, or None.
func (bound *Bound) buffer(device int32, name string) int32 {
	if buffer, known := bound.named[place{device, name}]; known {
		return buffer
	}
	return program.None
}
