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

// Message is what a worker says. One of its fields is set.
type Message struct {
	// Missing is why the worker can do nothing here. It ends, and has read nothing.
	Missing string `json:"missing,omitzero"`
	// Plan is that a plan's turn has come.
	Plan *Plan `json:"plan,omitzero"`
	// At is where it is in that, with a preposition: "in step 3 of 10".
	At   string       `json:"at,omitzero"`
	Step *report.Step `json:"step,omitzero"` // that has ended
	// Ran is that the plan has run.
	Ran *Ran `json:"ran,omitzero"`
	// Witnessed is what was seen of GPUs, for a certificate.
	Witnessed *certify.Observation `json:"witnessed,omitzero"`
	// Broke is why the plan's run failed.
	Broke string `json:"broke,omitzero"`
	// Done is the status that the worker exits with, as the last thing it says. All
	// errors are reported by then.
	Done *int `json:"done,omitzero"`
}

// Plan is a plan that is to run.
type Plan struct {
	File string `json:"file"`
	// Title is what runs, in a line for people.
	Title string `json:"title"`
	// Predicted is its report if nothing came of it.
	Predicted *report.Report `json:"foretold"`
}

// Ran is what came of a plan.
type Ran struct {
	// Document is the report, in JSON, and Text what people read of it.
	Document string `json:"document"`
	Text     string `json:"text"`
}

// maxMessage bounds a message: a report of 10⁶ steps takes 200 MB.
const maxMessage = 1 << 30

// text is a message as it is sent: its length in four bytes, the first the least, and
// JSON.
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

// read reads a message; io.EOF: there is no other. Memory grows with what comes,
// whatever length is said.
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
