package check

import (
	"slices"

	"medusa/internal/cuda"
	"medusa/restore/digest"
	"medusa/restore/live"
)

// A check run fills memory before each replay, thousands of times if there are many graphs. So the data is kept in device memory, and fills
// are copies on the device. A start that serves has no memory to spare, and replays few times: its fills come from the host.

// storeBytes bounds the device memory that fills are kept in. Fills that do not fit are copied from the host.
const storeBytes = 256 << 20

const storeAlign = 256

// pattern is data that repeats without end, on the host and perhaps on the device.
type pattern struct {
	data []byte
	at   cuda.DevicePtr // 0: on the host only
}

// put fills memory with the pattern from a place on.
func (p pattern) put(addr, from, size uint64) error {
	// mutant: fills are kept on the device
	if p.at == 0 {
		return write(addr, size, p.bytes(from, min(size, uint64(len(p.data)))))
	}
	once, at := min(size, uint64(len(p.data))), from%uint64(len(p.data))
	for done := uint64(0); done < once; {
		n := min(once-done, uint64(len(p.data))-at)
		if err := cuda.CopyOnDeviceAsync(cuda.DevicePtr(addr+done), p.at+cuda.DevicePtr(at), n, 0); err != nil {
			return err
		}
		done, at = done+n, 0
	}
	return repeat(addr, once, size)
}

// bytes returns the pattern from a place on.
func (p pattern) bytes(from, size uint64) []byte {
	at := from % uint64(len(p.data))
	if at+size <= uint64(len(p.data)) {
		return p.data[at : at+size]
	}
	out := make([]byte, 0, size)
	for uint64(len(out)) < size {
		out = append(out, p.data[at:min(uint64(len(p.data)), at+size-uint64(len(out)))]...)
		at = 0
	}
	return out
}

// store copies the fills of all spans to device memory, as far as there is room: first those that every replay needs again.
func (c *Checker) store() error {
	var all []*pattern
	if slices.ContainsFunc(c.spans, func(s span) bool { return s.scratch() }) {
		for round := range c.garbage {
			all = append(all, c.garbageOf(round))
		}
	}
	for _, kv := range []bool{false, true} { // most of a KV cache stays as it is
		for i := range c.spans {
			if (c.spans[i].class == digest.KV) != kv {
				continue
			}
			for _, fills := range c.fills {
				if k := fills[i]; k != nil {
					all = append(all, &k.pattern)
				}
			}
		}
	}
	kept, size := map[*byte]uint64{}, uint64(0) // places of data, which several fills may share
	for _, p := range all {
		if n := uint64(len(p.data)); n > 0 && size+n <= storeBytes {
			if _, known := kept[&p.data[0]]; !known {
				kept[&p.data[0]] = size
				size += (n + storeAlign - 1) / storeAlign * storeAlign
			}
		}
	}
	if size == 0 {
		return nil
	}
	if err := live.InTrigger(func() (err error) { c.stored, err = cuda.MemAlloc(size); return err }); err != nil {
		c.stored = 0
		if cuda.Sticky(err) {
			return err
		}
		return nil // a device that is full: fills come from the host
	}
	copied := map[*byte]bool{}
	for _, p := range all {
		if len(p.data) == 0 {
			continue
		}
		place, is := kept[&p.data[0]]
		if !is {
			continue
		}
		p.at = c.stored + cuda.DevicePtr(place)
		if !copied[&p.data[0]] {
			copied[&p.data[0]] = true
			if err := cuda.CopyToDevice(p.at, p.data); err != nil {
				return err
			}
		}
	}
	return nil
}

// unstore gives the memory of store back.
func (c *Checker) unstore() error {
	if c.stored == 0 {
		return nil
	}
	return live.InTrigger(c.stored.Free)
}
