package recording

import "medusa/interpose/trace"

// Saved is a record of memory's contents at `ready`. Its bytes lie in the recording's file for them: workspaces of libraries
// can take gigabytes, and three recordings are held at once.
type Saved struct {
	Alloc  uint32 // a buffer's
	Module uint32 // a variable's, as is name
	Name   string
	Offset uint64
	Size   uint64
	at     int64 // in the file
}

// save keeps a record without its bytes.
func (r *Recording) save(s Saved, data []byte) (Saved, error) {
	s.Size, s.at = uint64(len(data)), r.bytes.End()
	_, err := r.bytes.WriteAt(data, s.at)
	return s, err
}

// ReadSaved reads the bytes of a record into out, which has its size.
func (r *Recording) ReadSaved(s Saved, out []byte) error {
	_, err := r.bytes.ReadAt(out, s.at)
	return err
}

// addSaved takes a record of memory's contents.
func (r *Recording) addSaved(rec trace.Record) error {
	switch v := rec.(type) {
	case *trace.Content:
		s, err := r.save(Saved{Alloc: v.Alloc, Offset: v.Offset}, v.Data)
		r.Contents = append(r.Contents, s)
		return err
	case *trace.GlobalData:
		s, err := r.save(Saved{Module: v.Module, Name: v.Name, Offset: v.Offset}, v.Data)
		r.GlobalData = append(r.GlobalData, s)
		return err
	}
	return nil
}
