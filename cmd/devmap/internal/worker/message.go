package worker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/certify"
	"github.com/devmap-dev/devmap/executor/report"
)

// Message is a worker's message. Exactly one field is set.
type Message struct {
	// Missing says why the worker can do nothing here. It then ends, and has read nothing.
	Missing string `json:"missing,omitzero"`
	// Plan starts a plan's turn.
	Plan *Plan `json:"plan,omitzero"`
	// At is the current place in the turn, with a preposition: "in step 3 of 10".
	At   string       `json:"at,omitzero"`
	Step *report.Step `json:"step,omitzero"` // a finished step
	// Ran is the result of the plan.
	Ran *Ran `json:"ran,omitzero"`
	// Witnessed is a reading of GPUs for a certificate.
	Witnessed *certify.Observation `json:"witnessed,omitzero"`
	// Broke says why the plan's run failed.
	Broke string `json:"broke,omitzero"`
	// Done is the worker's exit status, in its last message. All errors are reported by then.
	Done *int `json:"done,omitzero"`
}

// Plan is a plan to run.
type Plan struct {
	File string `json:"file"`
	// Title describes the run in one line for people.
	Title string `json:"title"`
	// Predicted is its report if the run gives none.
	Predicted *report.Report `json:"foretold"`
}

// Ran is the result of a plan.
type Ran struct {
	// Document is the JSON report, and Text the report for people.
	Document string `json:"document"`
	Text     string `json:"text"`
}

// maxMessage limits a message: a report of 10⁶ steps takes 200 MB.
const maxMessage = 1 << 30

// text returns the encoded message: its length in four bytes, little-endian, and JSON.
func (message *Message) text() ([]byte, error) {
	text, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	if len(text) > maxMessage {
		return nil, fmt.Errorf("a message of %d bytes: at most %d are sent", len(text), maxMessage)
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...), nil
}

// read reads a message; io.EOF: there is no more. Memory grows with the bytes received, not with
// the announced length.
func read(from io.Reader) (*Message, error) {
	var length [4]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, errors.New("a message of the worker is cut off in its length")
		}
		return nil, err
	}
	size := int64(binary.LittleEndian.Uint32(length[:]))
	if size > maxMessage {
		return nil, fmt.Errorf("a message of %d bytes: at most %d are sent", size, maxMessage)
	}
	var text bytes.Buffer
	switch came, err := io.CopyN(&text, from, size); {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("a message of %d bytes is cut off behind %d", size, came)
	case err != nil:
		return nil, err
	}
	message := new(Message)
	if err := json.Unmarshal(text.Bytes(), message, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("a message of the worker: %w", err)
	}
	return message, nil
}
