//go:build !linux

package weights

func (file *openFile) openDirect(*disk) {}

func (file *openFile) readAt(raw []byte, at int64) (int, error) { return file.handle.ReadAt(raw, at) }
