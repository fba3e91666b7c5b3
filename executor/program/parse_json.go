package program

import (
	"errors"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// parseJSON reads what [Program.WriteJSON] writes, under the rules of the text.
func parseJSON(file string, data []byte) (*Program, error) {
	var doc fileProgram
	if err := modelgraph.DecodeJSON(file, data, &doc, true); err != nil {
		return nil, err
	}
	if doc.FormatVersion != version {
		return nil, &modelgraph.SyntaxError{File: file, Place: "format_version", Msg: fmt.Sprintf("%q is not %q", doc.FormatVersion, version)}
	}
	reader := &jsonReader{newBuilder()}
	if err := reader.read(&doc); err != nil {
		return nil, &modelgraph.SyntaxError{File: file, Place: reader.place(), Msg: err.Error()}
	}
	if len(reader.names) == 0 {
		return nil, &modelgraph.SyntaxError{File: file, Place: "devices", Msg: "there are none"}
	}
	return reader.finish(), nil
}

// jsonReader gives a builder the contents of a document. Its section is the array that it reads, at
// the index in it.
type jsonReader struct{ *builder }

func (reader *jsonReader) read(doc *fileProgram) error {
	program := &reader.program
	program.Model, program.Plan, program.Timed = doc.Model, doc.Plan, doc.Timed
	if program.Plan != "" && !isPlain(program.Plan) {
		reader.section = "plan"
		return wanted(program.Plan, "a digest")
	}
	err := each(reader, "predictions", doc.Predictions, reader.prediction)
	if err == nil {
		err = each(reader, "devices", doc.Devices, reader.deviceOf)
	}
	if err == nil {
		err = each(reader, "channels", doc.Channels, reader.channelOf)
	}
	if err == nil {
		err = each(reader, "routines", doc.Routines, reader.routineOf)
	}
	if err == nil {
		err = each(reader, "buffers", doc.Buffers, reader.bufferOf)
	}
	if err == nil {
		err = each(reader, "instructions", doc.Instructions, reader.instrOf)
	}
	return err
}

// each reads the elements of an array in order.
func each[element any](reader *jsonReader, section string, elements []element, read func(*element) error) error {
	reader.section = section
	for i := range elements {
		reader.at = int32(i)
		if err := read(&elements[i]); err != nil {
			return err
		}
	}
	return nil
}

func (reader *jsonReader) prediction(prediction *filePrediction) error {
	if !isName(prediction.Runtime) {
		return wanted(prediction.Runtime, "a runtime")
	}
	reader.program.Predictions = append(reader.program.Predictions, Prediction(*prediction))
	return within("peak_allocated_bytes, step_picoseconds", maxNumber, append(slices.Clone(prediction.Peaks), prediction.StepTicks)...)
}

// within returns an error for numbers outside of 0 to below limit.
func within(what string, limit int64, values ...int64) error {
	for _, value := range values {
		if value < 0 || value >= limit {
			return fmt.Errorf("%s: %d is not a number from 0 to below %d", what, value, limit)
		}
	}
	return nil
}

func (reader *jsonReader) deviceOf(device *fileDevice) error {
	err := within("device", maxIndex, int64(device.Device))
	if err == nil {
		err = within("arena_bytes, budget_bytes", maxNumber, device.Arena, device.Budget)
	}
	if err != nil {
		return err
	}
	return reader.declareDevice(device.Device, device.Arena, device.Budget)
}

func (reader *jsonReader) channelOf(channel *fileChannel) error {
	err := within("from, to", maxIndex, int64(channel.From), int64(channel.To))
	if err == nil {
		err = within("slots", maxSlots+1, channel.Slots)
	}
	if err == nil {
		err = within("slot_bytes, picoseconds, latency_picoseconds", maxNumber, channel.Bytes, channel.Ticks, channel.Latency)
	}
	if err == nil && !isChannel(channel.Name) {
		err = wanted(channel.Name, "a channel's name: letters, digits, _ [ ]")
	}
	if err != nil {
		return err
	}
	return reader.declareChannel(channel.From, channel.To, Channel{
		Name: channel.Name, Slots: int32(channel.Slots), Bytes: channel.Bytes, Ticks: channel.Ticks, Latency: channel.Latency,
	})
}

func (reader *jsonReader) routineOf(routine *fileRoutine) error {
	if !isObject(routine.Name) {
		return wanted(routine.Name, "a routine's name: letters, digits, . _ [ ], not after, not mbK")
	}
	made := Routine(*routine)
	reader.declareRoutine(made)
	return made.printable()
}

func (reader *jsonReader) bufferOf(buffer *fileBuffer) error {
	err := within("device", maxIndex, int64(buffer.Device))
	if err == nil {
		err = within("offset_bytes, size_bytes", maxNumber, buffer.Offset, buffer.Bytes)
	}
	if err == nil && !isObject(buffer.Name) {
		err = wanted(buffer.Name, "a buffer's name: letters, digits, . _ [ ], not after, not mbK")
	}
	if err == nil && !isName(buffer.Class) {
		err = wanted(buffer.Class, "a class of buffers")
	}
	if err != nil {
		return err
	}
	return reader.declareBuffer(buffer.Device, Buffer{Name: buffer.Name, Offset: buffer.Offset, Bytes: buffer.Bytes, Class: Class(buffer.Class)})
}

func (reader *jsonReader) instrOf(instr *fileInstr) error {
	err := within("device, number", maxIndex, int64(instr.Device), int64(instr.Number))
	if err == nil {
		err = within("picoseconds", maxNumber, instr.Ticks)
	}
	if err == nil && !isName(instr.Stream) {
		err = wanted(instr.Stream, "a stream")
	}
	if err != nil {
		return err
	}
	op, err := operation([]byte(instr.Op))
	if err != nil {
		return err
	}
	if err := reader.begin(instr.Device, instr.Number, []byte(instr.Stream), op); err != nil {
		return err
	}
	made, _ := reader.last()
	made.Ticks = instr.Ticks
	if err := reader.subjectOf(instr, made); err != nil {
		return err
	}
	return reader.buffersOf(instr)
}

// subjectOf reads the routine, the micro-batch and the message of an instruction.
func (reader *jsonReader) subjectOf(instr *fileInstr, made *Instr) error {
	if (instr.Channel == "") != (instr.Sequence == nil) {
		return errors.New("channel and sequence go together")
	}
	switch {
	case instr.Routine == "":
	case !made.Op.Runs() || !isObject(instr.Routine):
		return fmt.Errorf("routine: %s: want one of an instruction that runs one", quoted(instr.Routine))
	default:
		reader.runs([]byte(instr.Routine))
	}
	if instr.MicroBatch != nil {
		if err := within("micro_batch", maxIndex, int64(*instr.MicroBatch)); err != nil {
			return err
		}
		made.MicroBatch = *instr.MicroBatch
	}
	if instr.Sequence != nil {
		if !isChannel(instr.Channel) {
			return wanted(instr.Channel, "a channel")
		}
		if err := within("sequence", maxIndex, int64(*instr.Sequence)); err != nil {
			return err
		}
		reader.message([]byte(instr.Channel), *instr.Sequence)
	}
	return nil
}

func (reader *jsonReader) buffersOf(instr *fileInstr) error {
	for _, word := range instr.Buffers {
		name, mode := access([]byte(word))
		if !isObject(name) {
			return fmt.Errorf("buffers: %w", wanted(word, "NAME, >NAME or +NAME"))
		}
		reader.touches(name, mode)
	}
	for _, word := range instr.After {
		if err := reader.wait([]byte(word)); err != nil {
			return fmt.Errorf("after: %w", err)
		}
	}
	return nil
}
