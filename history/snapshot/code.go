package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The first byte of a value says what it is.
const (
	isNull  = 'n'
	isInt   = 'i'
	isText  = 's'
	isBytes = 'b'
)

// AppendValue appends the form of a value to a field.
func AppendValue(b []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(b, isNull), nil
	case int64:
		return binary.AppendVarint(append(b, isInt), v), nil
	case string:
		return append(binary.AppendUvarint(append(b, isText), uint64(len(v))), v...), nil
	case []byte:
		return append(binary.AppendUvarint(append(b, isBytes), uint64(len(v))), v...), nil
	}
	return b, fmt.Errorf("a value of type %T has no form in a backup", value)
}

var errValue = errors.New("a value is damaged")

// Values returns the values whose forms are in a field.
func Values(b []byte) (list []any, err error) {
	for len(b) > 0 {
		kind := b[0]
		b = b[1:]
		switch kind {
		case isNull:
			list = append(list, nil)
		case isInt:
			v, n := binary.Varint(b)
			if n <= 0 {
				return nil, errValue
			}
			list, b = append(list, v), b[n:]
		case isText, isBytes:
			size, n := binary.Uvarint(b)
			if n <= 0 || size > uint64(len(b)-n) {
				return nil, errValue
			}
			content := b[n : n+int(size)]
			b = b[n+int(size):]
			if kind == isText {
				list = append(list, string(content))
			} else {
				list = append(list, append([]byte{}, content...))
			}
		default:
			return nil, errValue
		}
	}
	return list, nil
}
