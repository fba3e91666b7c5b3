package schedule

import "encoding/binary"

// Keep calls prepare once for all instructions that compute the same on the same buffers, on their
// device's thread, and give for each of them. They differ in how many tokens came before: a
// generation of a thousand tokens keeps no more than one of a few.
func Keep[T any](of *Scheduler, prepare func(index int32) (T, error), give func(index int32, one T)) error {
	known := make(map[string]T)
	var key []byte
	for i := range of.Program.Instrs {
		index := int32(i)
		if !Computes(of.Program.Instrs[i].Op) {
			continue
		}
		key = of.likeness(key[:0], index)
		one, is := known[string(key)]
		if !is {
			err := of.DeviceOf(index).Do(func() (err error) {
				one, err = prepare(index)
				return err
			})
			if err != nil {
				return of.at(index, err)
			}
			known[string(key)] = one
		}
		give(index, one)
	}
	return nil
}

// likeness returns equal keys for instructions that do the same to the same buffers.
func (of *Scheduler) likeness(key []byte, index int32) []byte {
	instr := &of.Program.Instrs[index]
	for _, part := range []int32{of.Of[index], int32(instr.Op), instr.Routine, instr.MicroBatch} {
		key = binary.LittleEndian.AppendUint32(key, uint32(part))
	}
	for _, access := range of.Program.Accesses[instr.FirstAccess:instr.EndAccess] {
		key = append(binary.LittleEndian.AppendUint32(key, uint32(access.Buffer)), byte(access.Mode))
	}
	return key
}
