package recording

import (
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// imageInObject reads an image at its recorded place, from a shared object that still has the recorded build-id.
func imageInObject(m *Module) ([]byte, error) {
	f, err := os.Open(m.DSO)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	id, err := buildID(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.DSO, err)
	}
	// mutant: build of an image's shared object
	if id != m.BuildID {
		return nil, fmt.Errorf("%s has build-id %s, %s was recorded", m.DSO, id, m.BuildID)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if size := uint64(info.Size()); m.DSOOffset > size || m.ImageSize > size-m.DSOOffset {
		return nil, fmt.Errorf("%s: %d bytes at %d of %d", m.DSO, m.ImageSize, m.DSOOffset, size)
	}
	image := make([]byte, m.ImageSize)
	_, err = f.ReadAt(image, int64(m.DSOOffset))
	return image, err
}

const (
	noteBuildID  = 3  // NT_GNU_BUILD_ID
	buildIDBytes = 31 // as many of it as struct medusa_module holds
)

// buildID reads the build-id of an ELF file in hex, as the recorder spells it.
func buildID(f io.ReaderAt) (string, error) {
	object, err := elf.NewFile(f)
	if err != nil {
		return "", err
	}
	for _, p := range object.Progs {
		if p.Type != elf.PT_NOTE {
			continue
		}
		notes, err := io.ReadAll(p.Open())
		if err != nil {
			return "", err
		}
		for len(notes) >= 12 {
			word := func(i int) int { return int(object.ByteOrder.Uint32(notes[4*i:])) }
			name, desc, kind := word(0), word(1), word(2)
			start := 12 + (name+3)&^3
			if name < 0 || desc < 0 || start > len(notes) || desc > len(notes)-start {
				break
			}
			if kind == noteBuildID && string(notes[12:12+name]) == "GNU\x00" {
				return hex.EncodeToString(notes[start : start+min(desc, buildIDBytes)]), nil
			}
			notes = notes[min(len(notes), start+(desc+3)&^3):]
		}
	}
	return "", errors.New("it has no build-id")
}
