package graphir

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"google.golang.org/protobuf/encoding/protowire"
)

// row is an encoded Graph. Its columns stay encoded until they are added to their prediction, so that reading a graph takes no
// memory beside the result.
type row struct {
	label, template, base uint32
	batch                 int64
	flags                 uint64
	changes               [columnCount]changes
}

// changes is an encoded Changes: two packed lists.
type changes struct{ gap, delta []byte }

// firstColumn is the field number of Graph.grid; the other columns follow it.
const (
	firstColumn = 6
	plainCount  = 6 // columns of kernel nodes
	columnCount = plainCount + valueColumns
)

func columnName(i int) string {
	if i >= plainCount {
		return valueTable[i-plainCount].name
	}
	return [plainCount]string{"grid", "block", "shared", "words", "relocation_alloc", "relocation_offset"}[i]
}

var (
	errWire    = errors.New("field of another type")
	errTwice   = errors.New("list in several pieces")
	errColumns = errors.New("columns of unequal length")
	errDelta   = errors.New("delta beyond 32 bits")
)

// readRow parses a Graph and skips unknown fields.
func readRow(data []byte) (row, error) {
	var r row
	err := eachField(data, func(field protowire.Number, kind protowire.Type, number uint64, body []byte) error {
		column := field >= firstColumn && field < firstColumn+columnCount
		if column && kind != protowire.BytesType || field < firstColumn && kind != protowire.VarintType {
			return errWire
		}
		switch {
		case column:
			c := &r.changes[field-firstColumn]
			if err := c.read(body); err != nil {
				return fmt.Errorf("%s: %w", columnName(int(field-firstColumn)), err)
			}
		case field == 1:
			r.label = uint32(number)
		case field == 2:
			r.batch = protowire.DecodeZigZag(number)
		case field == 3:
			r.flags = number
		case field == 4:
			r.template = uint32(number)
		case field == 5:
			r.base = uint32(number)
		}
		return nil
	})
	return r, err
}

func (c *changes) read(data []byte) error {
	return eachField(data, func(field protowire.Number, kind protowire.Type, _ uint64, body []byte) error {
		list := &c.gap
		switch field {
		case 1:
		case 2:
			list = &c.delta
		default:
			return nil
		}
		if kind != protowire.BytesType {
			return errWire
		}
		if len(*list) > 0 {
			return errTwice
		}
		*list = body
		return nil
	})
}

// eachField visits the fields of a message: a varint as a number, and a length-delimited field as bytes.
func eachField(data []byte, visit func(field protowire.Number, kind protowire.Type, number uint64, body []byte) error) error {
	for len(data) > 0 {
		field, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		var number uint64
		var body []byte
		switch kind {
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(data)
		case protowire.BytesType:
			body, n = protowire.ConsumeBytes(data)
		default:
			n = protowire.ConsumeFieldValue(field, kind, data)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		if err := visit(field, kind, number, body); err != nil {
			return err
		}
	}
	return nil
}

// applyAll adds the row's changes to columns that contain their prediction.
func (c *columns) applyAll(r *row) error {
	for i, col := range [...][]uint32{c.grid, c.block, c.shared, c.words, c.relocationAlloc} {
		if err := apply(r.changes[i], col); err != nil {
			return fmt.Errorf("%s: %w", columnName(i), err)
		}
	}
	if err := apply(r.changes[plainCount-1], c.relocationOffset); err != nil {
		return fmt.Errorf("%s: %w", columnName(plainCount-1), err)
	}
	for i, col := range c.values {
		if err := apply(r.changes[plainCount+i], col); err != nil {
			return fmt.Errorf("%s: %w", columnName(plainCount+i), err)
		}
	}
	return nil
}

// narrow reports whether a column's values have 32 bits.
func narrow[T uint32 | uint64]() bool { return uint64(^T(0)) == math.MaxUint32 }

// apply adds changes to a column that contains its prediction. Nearly all numbers take one byte.
func apply[T uint32 | uint64](c changes, col []T) error {
	at, g := 0, 0 // positions in the column and in the gaps
	for d := 0; d < len(c.delta); d++ {
		if g >= len(c.gap) {
			return errColumns
		}
		gap, delta := uint64(c.gap[g]), uint64(c.delta[d])
		if gap >= 0x80 {
			n := 0
			if gap, n = varint(c.gap[g:]); n < 0 {
				return protowire.ParseError(n)
			}
			g += n - 1
		}
		if delta >= 0x80 {
			n := 0
			if delta, n = varint(c.delta[d:]); n < 0 {
				return protowire.ParseError(n)
			}
			d += n - 1
			if narrow[T]() && delta > math.MaxUint32 {
				return errDelta
			}
		}
		if gap >= uint64(len(col)-at) {
			return fmt.Errorf("change at entry %d of %d", uint64(at)+gap, len(col))
		}
		at += int(gap)
		col[at] += T(protowire.DecodeZigZag(delta))
		at, g = at+1, g+1
	}
	if g < len(c.gap) {
		return errColumns
	}
	return nil
}

// varint is protowire.ConsumeVarint without a branch a byte: lengths of deltas follow no pattern that a processor predicts.
func varint(b []byte) (uint64, int) {
	if len(b) < 8 {
		return protowire.ConsumeVarint(b)
	}
	x := binary.LittleEndian.Uint64(b)
	ends := ^x & 0x8080808080808080
	if ends == 0 {
		return protowire.ConsumeVarint(b)
	}
	size := (bits.TrailingZeros64(ends) + 1) / 8
	x &= 0x7f7f7f7f7f7f7f7f >> (64 - 8*size)
	// Seven bits of each byte move together: pairs, then fours, then all.
	x = x&0x007f007f007f007f | x&0x7f007f007f007f00>>1
	x = x&0x00003fff00003fff | x&0x3fff00003fff0000>>2
	return x&0x0fffffff | x&0x0fffffff00000000>>4, size
}
